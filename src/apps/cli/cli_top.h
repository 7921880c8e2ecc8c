/* SPDX-License-Identifier: Apache-2.0 */
/* What the counter files of a rack's processes say at one moment, and what
 * happened between two moments. */
#ifndef AQ_CLI_TOP_H
#define AQ_CLI_TOP_H

#include <jansson.h>
#include <sys/types.h>

#include "base/base.h"
#include "base/tally.h"

enum {
	CLI_TOP_PROCESS_MAX = 256,
	CLI_TOP_CLIENT_MAX = 512,
};

/* A process, and what it counts beside its clients. */
struct cli_top_process {
	uint64_t pid;
	char name[32]; /* of an engine or a switch its own */
	/* Counted by the NIC. */
	uint64_t rx_bytes, tx_bytes, rx_frames, tx_frames, direct_ops;
	/* Counted by a switch. */
	uint64_t frames, forwarded, program_drops, program_frames;
	/* Counted by an engine. */
	uint64_t reads, writes, errors, read_bytes, write_bytes;
	uint64_t probes, publications, sessions;
	/* Counted by a machine's cache of shared memory. */
	uint64_t faults, gets_read, gets_write, refused, invals, gives;
	uint64_t evictions, cached_bytes;
	bool is_engine;
	bool is_switch;
	bool is_cache;
};

/* One tally. */
struct cli_top_client {
	uint64_t pid;
	uint64_t start_ns; /* of the process's file */
	unsigned number;
	char process[32];
	enum tally_kind kind;
	char object[COUNTER_TEXT_MAX];
	char tenant[COUNTER_TEXT_MAX];
	uint64_t count[TALLY_COUNT];
	struct hist latency;
};

struct cli_top_sample {
	uint64_t at_ns; /* monotonic */
	unsigned process_count;
	struct cli_top_process process[CLI_TOP_PROCESS_MAX];
	unsigned client_count;
	struct cli_top_client *client; /* client_count of them */
};

/* Of a sample that is zero, or was taken before. */
void cli_top_take(const char *rundir, struct cli_top_sample *out);
void cli_top_release(struct cli_top_sample *sample);

/* What happened between the two; what is new counts from 0. at_ns is the time
 * between. `out` is zero, or was used before. */
void cli_top_diff(const struct cli_top_sample *before,
		  const struct cli_top_sample *now, struct cli_top_sample *out);

/* Clients that are shown together. */
struct cli_top_line {
	const struct cli_top_client *first; /* of them */
	unsigned clients;
	uint64_t operations;
	uint64_t count[TALLY_COUNT];
	struct hist latency;
};

/* Whether two clients are on one line. */
typedef bool (*cli_top_same_fn)(const struct cli_top_client *a,
				const struct cli_top_client *b);
bool cli_top_same_client(const struct cli_top_client *a,
			 const struct cli_top_client *b);
bool cli_top_same_kind(const struct cli_top_client *a,
		       const struct cli_top_client *b);
bool cli_top_same_object(const struct cli_top_client *a,
			 const struct cli_top_client *b);
bool cli_top_same_tenant(const struct cli_top_client *a,
			 const struct cli_top_client *b);
bool cli_top_same_all(const struct cli_top_client *a,
		      const struct cli_top_client *b);

/* The next line; *cursor starts at 0. */
bool cli_top_line_next(const struct cli_top_sample *s, cli_top_same_fn is_same,
		       unsigned *cursor, struct cli_top_line *line);

/* Clients of this machine that have the rack open: rows with pid, name, kind,
 * object and tenant. */
json_t *cli_top_clients(const char *rundir);

/* Caches of shared memory, with what they did in that time, per second; NULL:
 * with all that they ever did, by the names without "_per_s". */
json_t *cli_top_caches(const struct cli_top_sample *s, const uint64_t *ns);
void cli_top_print_caches(const json_t *rows, bool is_rate);
/* The same for `aquifer status`. */
json_t *cli_top_caches_of(const char *rundir);

/* What /v1/status of the nodes and a difference of two samples say. */
struct cli_rack;
json_t *cli_top_describe(struct cli_rack *rack, const struct cli_top_sample *d);
/* The same tree for people. */
void cli_top_print(const json_t *tree);

#endif
