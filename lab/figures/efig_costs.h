/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What networks, disks and workloads are in the figures of `aquifer sim
 * elastic`, each number with its source. NICs, bus and links of today's
 * hardware are in sim/model_constants.h, where also the kinds of source are
 * explained.
 *
 * Short names of sources:
 *   [J]     Khandelwal et al., Jiffy: Elastic Far-Memory for Stateful
 *           Serverless Analytics, EuroSys 2022, and the chapter on it in Y.
 *           Tang's dissertation
 *   [Jgit]  the public code and data beside it
 *   [S]     Vuppalapati et al., Building An Elastic Query Engine on
 *           Disaggregated Storage, NSDI 2020: the data set Snowset
 */
#ifndef AQ_FIGURES_EFIG_COSTS_H
#define AQ_FIGURES_EFIG_COSTS_H

#include "sim/model_constants.h"

#define EFIG_COSTS(X)                                                          \
	X(tenants, 100, "tenants", PUBLISHED, "[J] 6.1: of Snowset")           \
	X(jobs, 50000, "jobs", PUBLISHED, "[J] 6.1: about so many")            \
	X(window_s, 18000, "s", PUBLISHED, "[J] 6.1: five hours")              \
	X(servers, 10, "nodes", PUBLISHED, "[J] 6: m4.16xlarge")               \
	X(block_mib, 32, "MiB", DERIVED,                                       \
	  "a quarter of [J] 6, as the workload's peak is some fifth of what "  \
	  "ten servers of 256 GB have: more blocks cannot be played")          \
	X(lease_ms, 10000, "ms", ASSUMED,                                      \
	  "the controller's default; jobs remove what nobody reads any more")  \
	X(paper_lease_ms, 1000, "ms", PUBLISHED,                               \
	  "[J] 6: `life` and `sweep`, where only leases end files")            \
	X(task_mb_s, 78, "MB/s", PUBLISHED,                                    \
	  "[J] fig 9: where all memory systems meet: a task's own network")    \
	X(server_mb_s, 1250, "MB/s", PUBLISHED, "[J] 6: 10 Gb/s of a server")  \
	X(ssd_mb_s, 250, "MB/s", PUBLISHED,                                    \
	  "the most that a gp2 volume of these servers moves: AWS")            \
	X(s3_write_us, 11200, "us", PUBLISHED, "[J] fig 9: an object of 8 B")  \
	X(s3_read_us, 9600, "us", PUBLISHED, "[J] fig 9: an object of 8 B")    \
	X(s3_puts, 3500, "1/s", PUBLISHED, "AWS: of one prefix, a tenant's")   \
	X(s3_gets, 5500, "1/s", PUBLISHED, "AWS: of one prefix, a tenant's")   \
	X(chunk_bytes, 131072, "B", PUBLISHED,                                 \
	  "[Jgit]: what a task moves at a time")                               \
	X(chunks, 4, "chunks", PUBLISHED, "[Jgit]: of these under way")        \
	X(stages_max, 8, "stages", ASSUMED,                                    \
	  "of a job, one to eight outputs that the next stage reads; each "    \
	  "as likely as the next shorter one by half")                         \
	X(stage_milli_s, 5000, "ms", ASSUMED,                                  \
	  "median of a stage's work beside its data, log-normal")              \
	X(stage_milli_sigma, 1000, "1/1000", ASSUMED,                          \
	  "of the natural logarithm of that")                                  \
	X(work_mb_s, 40, "MB/s", ASSUMED,                                      \
	  "of a stage's input and output, that a task works on beside that")   \
	X(data_kb, 400, "KB", FITTED,                                          \
	  "median of a stage's output, of a tenant with a median of jobs: "    \
	  "blocks that can be played; [S] has five orders of magnitude")       \
	X(data_milli_sigma, 1500, "1/1000", FITTED,                            \
	  "of the natural logarithm: with the next two it makes what [J] 2 "   \
	  "and 6.1 say of use, which `workload` prints")                       \
	X(busy_milli_sigma, 1200, "1/1000", FITTED,                            \
	  "of the logarithm of a tenant's number of jobs: as the last")        \
	X(busy_milli_power, 2000, "1/1000", FITTED,                            \
	  "of that number, with which outputs grow: as the last")              \
	X(data_max_mb, 65536, "MB", ASSUMED, "the largest output of a stage")  \
	X(task_data_mb, 1024, "MB", ASSUMED,                                   \
	  "of a stage, for each of its tasks: one shuffle file each")          \
	X(tasks_max, 64, "tasks", ASSUMED, "of a stage")                       \
	X(burst_jobs, 40, "jobs", ASSUMED,                                     \
	  "that a tenant starts in a burst, on average, geometric")            \
	X(burst_gap_milli_s, 4000, "ms", ASSUMED,                              \
	  "between two of these, on average, exponential")                     \
	X(slow_ps_per_byte, 800, "ps/B", PUBLISHED, "[J] 6: links of 10 Gb/s") \
	X(execute_ps, 443000, "ps", MEASURED,                                  \
	  "a message at a node's thread, with its answer: `aquifer bench "     \
	  "elastic`, 1,128,000 puts and gets in a second, 16 in a message")    \
	X(answer_ps, 443000, "ps", ASSUMED,                                    \
	  "one that waited is answered: as execute_ps")                        \
	X(wake_ps, 10000000, "ps", ASSUMED,                                    \
	  "an interrupt, and the listener that sleeps for it runs")            \
	X(http_us, 200, "us", ASSUMED,                                         \
	  "a request to the controller and its answer: TCP, JSON")             \
	X(order_us, 1100, "us", MEASURED,                                      \
	  "a commit and an order to a node: `aquifer bench control`, order")   \
	X(item_bytes, 102400, "B", PUBLISHED, "[Jgit]: items and values")      \
	X(life_peak_mib, 2048, "MiB", ASSUMED, "of one file, queue or store")  \
	X(life_block_mib, 16, "MiB", ASSUMED,                                  \
	  "of its blocks: as many as [J] has with 128 MB and 16 GB")           \
	X(record_bytes, 1048576, "B", ASSUMED, "appended at a time")

struct efig_costs {
	EFIG_COSTS(MODEL_FIELD)
};

extern const struct efig_costs efig_costs;

#endif
