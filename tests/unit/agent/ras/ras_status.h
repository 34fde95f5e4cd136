/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A status as NCCL 2.28.9 writes it: two communicators of four ranks on two nodes, one missing. */
#ifndef NT_TESTS_UNIT_AGENT_RAS_RAS_STATUS_H
#define NT_TESTS_UNIT_AGENT_RAS_RAS_STATUS_H

#define RAS_RANK(rank, host, pid, init)                                                            \
	"{\"rank\": " rank ", \"host\": \"" host "\", \"pid\": " pid                               \
	", \"cuda_dev\": 0, \"nvml_dev\": 0, \"status\": {\"init_state\": " init                   \
	", \"async_error\": 0, \"finalize_called\": false, \"destroy_flag\": false, "              \
	"\"abort_flag\": false}, \"collective_counts\": {\"Broadcast\": 0, \"AllReduce\": 17}}"
#define RAS_MISSING(rank, host, pid, dead)                                                         \
	"{\"rank\": " rank ", \"host\": \"" host "\", \"pid\": " pid                               \
	", \"cuda_dev\": 0, \"nvml_dev\": 0, \"status\": {\"unresponsive\": true, "                \
	"\"considered_dead\": " dead "}}"
#define RAS_COMM(hash, size, ranks, missing)                                                       \
	"{\"hash\": \"" hash "\", \"secondary_hash\": \"0x1:0x2\", \"size\": " size                \
	", \"ranks_count\": 3, \"missing_ranks_count\": 1, \"ranks\": [" ranks                     \
	"], \"missing_ranks\": [" missing "]}"
#define RAS_STATUS(comms)                                                                          \
	"{\n  \"nccl_version\": \"2.28.9\",\n  \"cuda_runtime_version\": 13000,\n"                 \
	"  \"timestamp\": \"2026-01-01 00:00:00\",\n  \"communicators_count\": 2,\n"               \
	"  \"communicators\": [" comms "\n  ],\n"                                                  \
	"  \"ras\": {\"collection_time_sec\": 0.012, \"timeouts_count\": 0}\n}\n"

#define RAS_EXAMPLE                                                                                \
	RAS_STATUS(RAS_COMM(                                                                       \
		"0xffffffffffffff01", "4",                                                         \
		RAS_RANK("0", "10.0.0.1", "42", "0") "," RAS_RANK(                                 \
			"1", "10.0.0.1", "43", "0") "," RAS_RANK("2", "10.0.0.2", "42", "7"),      \
		RAS_MISSING("3", "10.0.0.2", "43",                                                 \
			    "true")) "," RAS_COMM("0xabc", "2",                                    \
						  RAS_RANK("1", "10.0.0.1", "42", "0"),            \
						  RAS_MISSING("0", "unknown", "-1", "false")))

#endif
