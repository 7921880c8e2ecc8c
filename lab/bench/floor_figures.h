/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each peer does on a quiet machine of the target kind. A peer that is far
 * from its own figure was disturbed, or runs on another kind of machine; either
 * way a ratio against it proves nothing, and the report calls it void.
 *
 * Source: medians measured on 2026-11-15 on a KVM guest with two cores (Intel
 * Xeon model 207, TSC 2.3 GHz, kernel 6.18.44), gcc 12 -O3, UCX 1.13.1 from
 * Debian with a server that spins, one process per core, SCHED_FIFO 50.
 */
#ifndef AQ_BENCH_FLOOR_FIGURES_H
#define AQ_BENCH_FLOOR_FIGURES_H

#define FLOOR_TOLERANCE 0.30

struct floor_figure {
	double value; /* ns for a latency, operations per second for a rate */
	const char *source;
};

static const struct floor_figure floor_ring_rtt = {
	294, "ring, sequence number in the 64 B slot, round trip p50"};
static const struct floor_figure floor_ucx_get64 = {
	4555e3, "UCX posix,cma get 64 B of ordinary memory, 32 outstanding"};
static const struct floor_figure floor_ucx_get4k = {
	1750e3, "UCX posix,cma get 4 KiB of ordinary memory, 32 outstanding"};
static const struct floor_figure floor_ucx_mapped64 = {
	27, "UCX posix get 64 B of memory that UCX allocated, p50"};
static const struct floor_figure floor_ucx_tcp_lat64 = {
	7760, "UCX tcp get 64 B, one outstanding, p50"};
static const struct floor_figure floor_ucx_tcp_get64 = {
	281e3, "UCX tcp get 64 B, 32 outstanding"};
static const struct floor_figure floor_ucx_tcp_get4k = {
	228e3, "UCX tcp get 4 KiB, 32 outstanding"};

#endif
