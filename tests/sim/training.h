/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One training step on the stand-in device: what a Megatron-like loop puts on its streams. */
#ifndef NT_SIM_TRAINING_H
#define NT_SIM_TRAINING_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/fault.h"
#include "tests/sim/world.h"

enum sim_check {
	SIM_CHECK_NONE, /* the host runs ahead until the end of the step */
	SIM_CHECK_BUCKET, /* awaits its own work before each bucket, as Megatron's check for NaN */
	SIM_CHECK_STEP, /* awaits its own work once, before the first bucket */
};

struct sim_model_options {
	double compute_ms; /* of one rank and step */
	double jitter; /* relative, of each kernel */
	uint32_t layers, kernels; /* per stage; of a layer's forward pass */
	uint32_t microbatches, buckets;
	double gradient_mb, activation_kb;
	enum sim_check check;
	bool shard; /* reduce-scatter and all-gather in place of all-reduce */
	bool one_stream; /* all collectives, as of a process group of PyTorch */
	bool graph; /* layers with their tensor reductions, and buckets, are captured graphs */
};

struct sim_training;

/* Memory, streams and events. Ends the process where the device refuses. */
struct sim_training *sim_training_new(struct sim_world *world,
				      const struct sim_model_options *options);
void sim_training_free(struct sim_training *training);

/*
 * One step, until its loss is on the host. `wish` of any rank is told to all; true: some rank had
 * one. Checks that the reduced values are right.
 */
bool sim_training_step(struct sim_training *training, const struct sim_fault *fault, bool wish);
/* A small all-reduce of all ranks, awaited. */
void sim_training_barrier(struct sim_training *training);

#endif
