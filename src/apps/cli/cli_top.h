/* SPDX-License-Identifier: Apache-2.0 */
/* What the counter files of a rack's processes say at one moment, and what
 * happened between two moments. */
#ifndef AQ_CLI_TOP_H
#define AQ_CLI_TOP_H

#include <sys/types.h>

#include "base/base.h"
#include "base/hist.h"

enum {
	CLI_TOP_PROCESS_MAX = 256,
};

struct cli_top_process {
	uint64_t pid;
	char name[32];
	/* Counted by clients. */
	uint64_t reads, writes, atomics, errors;
	uint64_t read_bytes, write_bytes;
	/* Counted by the NIC. */
	uint64_t rx_bytes, tx_bytes, rx_frames, tx_frames, direct_ops;
	/* Counted by a switch. */
	uint64_t frames, forwarded, program_drops, program_frames;
	/* Counted by an engine, beside reads, writes and bytes. */
	uint64_t probes, publications, sessions;
	bool is_client;
	bool is_engine;
	bool is_switch;
};

struct cli_top_sample {
	uint64_t at_ns; /* monotonic */
	unsigned count;
	struct cli_top_process process[CLI_TOP_PROCESS_MAX];
	struct hist latency; /* of all clients */
};

void cli_top_take(const char *rundir, struct cli_top_sample *out);

/* `now` minus `before`, process by process; one that is new counts from 0. The
 * result's at_ns is the time between, its latency only what was added. */
void cli_top_diff(const struct cli_top_sample *before,
		  const struct cli_top_sample *now, struct cli_top_sample *out);

#endif
