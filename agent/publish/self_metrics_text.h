/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The texts that several of the agent's own metrics share: agent/publish/self_metrics.c. */
#ifndef NT_AGENT_PUBLISH_SELF_METRICS_TEXT_H
#define NT_AGENT_PUBLISH_SELF_METRICS_TEXT_H

#define REFUSED_FILES "Files that are not attached, each counted once, by reason."
#define STALLS        "Operations on a process or a file that timed out, by operation."
#define NO_PROFILE    "Requests for profiles that were refused: over a cap, or in quarantine."
#define PROFILE_TIMES "Times at which profiles were to sample; missed: late, or over the budget."
#define NOT_WHOLE                                                                                  \
	"Samples of threads in profiles that are torn (it ran meanwhile), without frames, or over a cap."
#define UNSENT_PROFILE "Profiles that no window sent: no such rank, over a cap, or too large."
#define UNSENT_STACKS                                                                              \
	"Stacks that no window sent: the process had ended, or a newer one came first."
#define UNREAD    "Reads skipped: of processes in quarantine or over their read allowance."
#define DROPPED   "Events lost because the ring buffer was full."
#define OVER_CAP  "Items omitted because a table was full."
#define ENROLMENT "Requests for the key of this node, by result."
#define REQUESTS  "Requests for more detail from the control topic, by result."
#define QUERIES                                                                                    \
	"Queries of CUDA events, by where they prove the GPU to be: inside or outside of communication."
#define BATCHES     "Batches of steps of which queries of events give the own work, by result."
#define RAS_DROPPED "Values in the answers of NCCL's RAS that were dropped, by reason."
#define UNSENT      "Messages that did not reach the bus."

#endif
