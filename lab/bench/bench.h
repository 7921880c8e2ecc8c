/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line calls: the benchmarks, by name. */
#ifndef AQ_BENCH_H
#define AQ_BENCH_H

/* `aquifer bench verbs ...`; argv[0] is "verbs". Returns an exit code: 0 ran,
 * 1 failed, 2 wrong usage, 3 a ratio missed its bound (--check only). */
int bench_verbs_cmd(int argc, char **argv);
/* `aquifer bench edm ...`, the same. */
int bench_edm_cmd(int argc, char **argv);
/* `aquifer bench offload ...`, the same. */
int bench_offload_cmd(int argc, char **argv);
/* `aquifer bench kv ...`, the same. */
int bench_kv_cmd(int argc, char **argv);
/* `aquifer bench paging ...`, the same. */
int bench_paging_cmd(int argc, char **argv);

/* `aquifer bench fair ...`, the same. */
int bench_fair_cmd(int argc, char **argv);
/* `aquifer bench run ...`, the same. */
/* `aquifer bench switch ...`, the same. */
int bench_switch_cmd(int argc, char **argv);

#endif
