/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/training.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/sim/lib/cuda.h"
#include "tests/sim/lib/standin.h"

enum {
	LOSS_FLOATS = 4, /* loss, ones, wish, unused */
	BATCH_BYTES = 64 << 10,
};

struct sim_training {
	struct sim_model_options opt;
	struct sim_world *world;
	cudaStream_t compute, reduce, load;
	cudaEvent_t loaded, ready, reduced;
	/* NULL: not captured */
	cudaGraphExec_t layer_graph[2]; /* forward, backward */
	cudaGraphExec_t *bucket_graph; /* owned, one a bucket */
	float *activation, *gradient, *loss; /* on the device */
	float *loss_host, *batch_host;
	void *batch;
	size_t activation_floats, bucket_floats;
	uint64_t seed;
};

static const struct sim_function timed = {.magic = SIM_FUNCTION_MAGIC, .kind = SIM_FUNCTION_TIMED};

static void launch(struct sim_training *training, double ns, const struct sim_fault *fault)
{
	double jitter = 1 + training->opt.jitter * (2 * sim_random(&training->seed) - 1);
	uint64_t duration_ns = (uint64_t)(ns * jitter * fault->compute);
	void *args[] = {&duration_ns};
	dim3 grid = {132, 1, 1}, block = {256, 1, 1};

	sim_must(cudaLaunchKernel(&timed, grid, block, args, 0, training->compute),
		 "cudaLaunchKernel");
	training->world->truth.launches++;
}

/* A third of the work is the forward pass, the rest is the backward pass. */
static double kernel_ns(const struct sim_model_options *opt, bool backward)
{
	double share = backward ? 2.0 / 3 : 1.0 / 3;

	return opt->compute_ms * 1e6 * share /
	       (opt->microbatches * opt->layers * (double)opt->kernels);
}

static void put_layer(struct sim_training *training, bool backward, const struct sim_fault *fault)
{
	const struct sim_model_options *opt = &training->opt;

	for (uint32_t i = 0; i < opt->kernels; i++) {
		launch(training, kernel_ns(opt, backward), fault);
		/* After attention and after the last matrix. */
		if (i == opt->kernels / 2 || i + 1 == opt->kernels)
			sim_all_reduce(training->world, &training->world->tensor,
				       training->activation, training->activation_floats,
				       training->compute);
	}
}

/* A graph is a launch, and makes calls that nobody counts while it is captured. */
static void launch_graph(struct sim_training *training, cudaGraphExec_t exec, cudaStream_t stream,
			 const struct sim_group *group, const char *op, int calls, size_t floats)
{
	struct sim_truth *truth = &training->world->truth;

	sim_must(cudaGraphLaunch(exec, stream), "cudaGraphLaunch");
	truth->launches++;
	for (int i = 0; i < calls && group->comm; i++)
		sim_truth_add(truth, op, group->name, group->rank, group->size,
			      floats * sizeof(float));
}

static void layer(struct sim_training *training, bool backward, const struct sim_fault *fault)
{
	cudaGraphExec_t exec = training->layer_graph[backward];

	/* A captured kernel keeps its duration, so a slow rank launches it plainly. */
	if (!exec || fault->compute != 1) {
		put_layer(training, backward, fault);
		return;
	}
	launch_graph(training, exec, training->compute, &training->world->tensor, "all-reduce", 2,
		     training->activation_floats);
}

/* The gradients of one bucket, on the stream for it. */
static void put_bucket(struct sim_training *training, uint32_t bucket, size_t floats)
{
	struct sim_group *data = &training->world->data;
	float *gradient = training->gradient + bucket * training->bucket_floats;

	if (training->opt.shard)
		sim_reduce_scatter(training->world, data, gradient, floats / data->size,
				   training->reduce);
	else
		sim_all_reduce(training->world, data, gradient, floats, training->reduce);
}

/* Instantiates what was captured, and forgets that it was counted: nothing of it ran. */
static void end_capture(struct sim_training *training, const struct sim_truth *before,
			cudaGraphExec_t *ret_exec)
{
	struct sim_truth *truth = &training->world->truth;
	uint64_t launches = truth->launches;
	cudaGraph_t graph = NULL;

	sim_must(cudaStreamEndCapture(training->compute, &graph), "cudaStreamEndCapture");
	sim_must(cudaGraphInstantiate(ret_exec, graph, 0), "cudaGraphInstantiate");
	sim_must(cudaGraphDestroy(graph), "cudaGraphDestroy");
	*truth = *before;
	truth->launches = launches; /* calls of cudaLaunchKernel they are all the same */
}

static void capture_layer(struct sim_training *training, bool backward)
{
	struct sim_fault healthy = {.compute = 1, .nic = 1};
	struct sim_truth before = training->world->truth;

	sim_must(cudaStreamBeginCapture(training->compute, 0), "cudaStreamBeginCapture");
	put_layer(training, backward, &healthy);
	end_capture(training, &before, &training->layer_graph[backward]);
}

/* On a stream that joins the capture, and is joined at its end. */
static void capture_bucket(struct sim_training *training, uint32_t bucket)
{
	struct sim_truth before = training->world->truth;

	sim_must(cudaStreamBeginCapture(training->compute, 0), "cudaStreamBeginCapture");
	sim_must(cudaEventRecord(training->ready, training->compute), "cudaEventRecord");
	sim_must(cudaStreamWaitEvent(training->reduce, training->ready, 0), "cudaStreamWaitEvent");
	put_bucket(training, bucket, training->bucket_floats);
	sim_must(cudaEventRecord(training->reduced, training->reduce), "cudaEventRecord");
	sim_must(cudaStreamWaitEvent(training->compute, training->reduced, 0),
		 "cudaStreamWaitEvent");
	end_capture(training, &before, &training->bucket_graph[bucket]);
}

/* ---- the passes ---- */

static bool is_first_stage(const struct sim_training *training)
{
	return training->world->pipeline.rank == 0;
}

static bool is_last_stage(const struct sim_training *training)
{
	return training->world->pipeline.rank + 1 == training->world->pipeline.size;
}

static void forward(struct sim_training *training, const struct sim_fault *fault)
{
	struct sim_group *pipeline = &training->world->pipeline;

	if (!is_first_stage(training))
		sim_recv(training->world, pipeline, training->activation,
			 training->activation_floats, pipeline->rank - 1, training->compute);
	for (uint32_t i = 0; i < training->opt.layers; i++)
		layer(training, false, fault);
	if (!is_last_stage(training))
		sim_send(training->world, pipeline, training->activation,
			 training->activation_floats, pipeline->rank + 1, training->compute);
}

/* Starts the reduction of a bucket when its gradients are there, beside the work that follows. */
static void reduce_bucket(struct sim_training *training, uint32_t bucket,
			  const struct sim_fault *fault)
{
	struct sim_group *data = &training->world->data;
	size_t floats = training->bucket_floats;
	bool wrong = fault->mismatch && bucket == 0;

	if (!data->comm)
		return;
	if (training->opt.check == SIM_CHECK_BUCKET ||
	    (training->opt.check == SIM_CHECK_STEP && bucket == 0))
		sim_must(cudaStreamSynchronize(training->compute), "cudaStreamSynchronize");
	sim_must(cudaEventRecord(training->ready, training->compute), "cudaEventRecord");
	sim_must(cudaStreamWaitEvent(training->reduce, training->ready, 0), "cudaStreamWaitEvent");
	if (wrong || !training->bucket_graph[bucket])
		put_bucket(training, bucket, floats - (wrong ? 1 : 0));
	else
		launch_graph(training, training->bucket_graph[bucket], training->reduce, data,
			     training->opt.shard ? "reduce-scatter" : "all-reduce", 1,
			     training->opt.shard ? floats / data->size : floats);
}

static void backward(struct sim_training *training, const struct sim_fault *fault, bool is_last)
{
	const struct sim_model_options *opt = &training->opt;
	struct sim_group *pipeline = &training->world->pipeline;
	uint32_t bucket = 0;

	if (!is_last_stage(training))
		sim_recv(training->world, pipeline, training->activation,
			 training->activation_floats, pipeline->rank + 1, training->compute);
	for (uint32_t i = 0; i < opt->layers; i++) {
		layer(training, true, fault);
		/* With a check once a step all buckets come at the end. */
		while (is_last && opt->check != SIM_CHECK_STEP &&
		       (bucket + 1) * opt->layers <= (i + 1) * opt->buckets)
			reduce_bucket(training, bucket++, fault);
	}
	if (!is_first_stage(training))
		sim_send(training->world, pipeline, training->activation,
			 training->activation_floats, pipeline->rank - 1, training->compute);
	while (is_last && bucket < opt->buckets)
		reduce_bucket(training, bucket++, fault);
}

static void update(struct sim_training *training, const struct sim_fault *fault)
{
	struct sim_group *data = &training->world->data;

	sim_must(cudaEventRecord(training->reduced, training->reduce), "cudaEventRecord");
	sim_must(cudaStreamWaitEvent(training->compute, training->reduced, 0),
		 "cudaStreamWaitEvent");
	launch(training, 50000, fault);
	if (!training->opt.shard)
		return;
	for (uint32_t i = 0; i < training->opt.buckets; i++)
		sim_all_gather(training->world, data,
			       training->gradient + i * training->bucket_floats,
			       training->bucket_floats / data->size, training->compute);
}

/* Of all ranks. */
static void reduce_loss(struct sim_training *training, size_t floats)
{
	struct sim_world *world = training->world;
	cudaStream_t stream = training->opt.one_stream ? training->reduce : training->compute;

	if (!training->opt.one_stream) {
		sim_all_reduce(world, &world->world, training->loss, floats, stream);
		return;
	}
	sim_must(cudaEventRecord(training->ready, training->compute), "cudaEventRecord");
	sim_must(cudaStreamWaitEvent(stream, training->ready, 0), "cudaStreamWaitEvent");
	sim_all_reduce(world, &world->world, training->loss, floats, stream);
	sim_must(cudaEventRecord(training->reduced, stream), "cudaEventRecord");
	sim_must(cudaStreamWaitEvent(training->compute, training->reduced, 0),
		 "cudaStreamWaitEvent");
}

/* The loss of all ranks on the host: the end of the step for everybody. */
static bool finish(struct sim_training *training, bool wish)
{
	struct sim_world *world = training->world;
	float *loss = training->loss_host;

	loss[0] = (float)world->world.rank;
	loss[1] = 1;
	loss[2] = wish ? 1 : 0;
	sim_must(cudaMemcpyAsync(training->loss, loss, LOSS_FLOATS * sizeof(float),
				 cudaMemcpyHostToDevice, training->compute),
		 "cudaMemcpyAsync");
	reduce_loss(training, LOSS_FLOATS);
	sim_must(cudaMemcpyAsync(loss, training->loss, LOSS_FLOATS * sizeof(float),
				 cudaMemcpyDeviceToHost, training->compute),
		 "cudaMemcpyAsync");
	sim_must(cudaStreamSynchronize(training->compute), "cudaStreamSynchronize");
	if (loss[1] != (float)world->world.size ||
	    loss[0] != (float)(world->world.size * (world->world.size - 1) / 2)) {
		(void)fprintf(stderr, "train: rank %u: reduced to %g %g\n", world->world.rank,
			      (double)loss[0], (double)loss[1]);
		_exit(4);
	}
	return loss[2] > 0;
}

bool sim_training_step(struct sim_training *training, const struct sim_fault *fault, bool wish)
{
	const struct sim_model_options *opt = &training->opt;

	ncclSimSlowNic(fault->nic);
	sim_must(cudaMemcpyAsync(training->batch, training->batch_host, BATCH_BYTES,
				 cudaMemcpyHostToDevice, training->load),
		 "cudaMemcpyAsync");
	sim_must(cudaEventRecord(training->loaded, training->load), "cudaEventRecord");
	sim_must(cudaStreamWaitEvent(training->compute, training->loaded, 0),
		 "cudaStreamWaitEvent");
	for (uint32_t i = 0; i < opt->microbatches; i++)
		forward(training, fault);
	for (uint32_t i = 0; i < opt->microbatches; i++)
		backward(training, fault, i + 1 == opt->microbatches);
	update(training, fault);
	return finish(training, wish);
}

void sim_training_barrier(struct sim_training *training)
{
	reduce_loss(training, 1);
	sim_must(cudaStreamSynchronize(training->compute), "cudaStreamSynchronize");
}

/* ---- making ---- */

struct sim_training *sim_training_new(struct sim_world *world,
				      const struct sim_model_options *options)
{
	struct sim_training *training = calloc(1, sizeof(*training));
	size_t gradient_floats = (size_t)(options->gradient_mb * (1 << 20) / sizeof(float));

	sim_must(!training, "calloc");
	training->bucket_graph = calloc(options->buckets, sizeof(cudaGraphExec_t));
	sim_must(!training->bucket_graph, "calloc");
	training->opt = *options;
	training->world = world;
	training->seed = world->world.rank + 1;
	training->activation_floats =
		(size_t)(options->activation_kb * (1 << 10) / sizeof(float)) + 1;
	training->bucket_floats = gradient_floats / options->buckets + 2;
	sim_must(cudaStreamCreateWithFlags(&training->compute, cudaStreamNonBlocking), "stream");
	sim_must(cudaStreamCreateWithFlags(&training->load, cudaStreamNonBlocking), "stream");
	sim_must(cudaStreamCreateWithPriority(&training->reduce, cudaStreamNonBlocking, -1),
		 "stream");
	sim_must(cudaEventCreateWithFlags(&training->loaded, cudaEventDisableTiming), "event");
	sim_must(cudaEventCreateWithFlags(&training->ready, cudaEventDisableTiming), "event");
	sim_must(cudaEventCreateWithFlags(&training->reduced, cudaEventDisableTiming), "event");
	sim_must(cudaMalloc((void **)&training->activation,
			    training->activation_floats * sizeof(float)),
		 "cudaMalloc");
	sim_must(cudaMalloc((void **)&training->gradient,
			    options->buckets * training->bucket_floats * sizeof(float)),
		 "cudaMalloc");
	sim_must(cudaMalloc((void **)&training->loss, LOSS_FLOATS * sizeof(float)), "cudaMalloc");
	sim_must(cudaMalloc(&training->batch, BATCH_BYTES), "cudaMalloc");
	sim_must(cudaHostAlloc((void **)&training->loss_host, LOSS_FLOATS * sizeof(float), 0),
		 "cudaHostAlloc");
	sim_must(cudaHostAlloc((void **)&training->batch_host, BATCH_BYTES, 0), "cudaHostAlloc");
	if (options->graph) {
		capture_layer(training, false);
		capture_layer(training, true);
		for (uint32_t i = 0; i < options->buckets && world->data.comm; i++)
			capture_bucket(training, i);
	}
	/* Of gradients and activations only the time matters, not the values. */
	ncclSimMoveData(4096);
	/* All ranks begin with the same weights. */
	sim_broadcast(world, &world->data, training->gradient, training->bucket_floats,
		      training->compute);
	sim_must(cudaStreamSynchronize(training->compute), "cudaStreamSynchronize");
	return training;
}

void sim_training_free(struct sim_training *training)
{
	if (!training)
		return;
	for (int i = 0; i < 2; i++)
		if (training->layer_graph[i])
			(void)cudaGraphExecDestroy(training->layer_graph[i]);
	for (uint32_t i = 0; i < training->opt.buckets; i++)
		if (training->bucket_graph[i])
			(void)cudaGraphExecDestroy(training->bucket_graph[i]);
	free(training->bucket_graph);
	(void)cudaFree(training->activation);
	(void)cudaFree(training->gradient);
	(void)cudaFree(training->loss);
	(void)cudaFree(training->batch);
	(void)cudaFreeHost(training->loss_host);
	(void)cudaFreeHost(training->batch_host);
	(void)cudaEventDestroy(training->loaded);
	(void)cudaEventDestroy(training->ready);
	(void)cudaEventDestroy(training->reduced);
	(void)cudaStreamDestroy(training->compute);
	(void)cudaStreamDestroy(training->reduce);
	(void)cudaStreamDestroy(training->load);
	free(training);
}
