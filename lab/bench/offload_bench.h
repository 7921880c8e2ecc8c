/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `bench offload` measures: an application that looks records up in far
 * memory, and every way to get them. All ways share one private rack (a memory
 * node and an engine) and one application.
 */
#ifndef AQ_BENCH_OFFLOAD_BENCH_H
#define AQ_BENCH_OFFLOAD_BENCH_H

#include <aquifer/aquifer.h>

#include "bench.h"
#include "hlog/hlog.h"

enum offload_way {
	WAY_NONE,
	WAY_LOCAL,     /* all records in this process */
	WAY_FILE,      /* on a disk, io_uring and O_DIRECT */
	WAY_SYNC,      /* one READ at a time */
	WAY_ASYNC,     /* READs in batches of 100, each with its completion */
	WAY_QUIET,     /* the same, with one completion per batch */
	WAY_TWO_SIDED, /* a message to a server and back, one at a time */
	WAY_REDY,      /* messages in batches, by an I/O thread */
	WAY_COW,       /* local stores; an engine that sends packets */
	WAY_COW_ALONE, /* the same, each completion told at once */
	WAY_COW_READS, /* the same, each read is a READ of its own */
	/* Where the records are mapped: */
	WAY_COW_BESIDE,	  /* the engine is beside the memory node */
	WAY_ASYNC_DIRECT, /* READs */
	/* In a rack whose NICs are all at one switch: */
	WAY_P4,	  /* the engine is a program of that switch */
	WAY_SPOT, /* it is a process apart from the memory */
	WAY_BARE, /* no engine, and another switch without a program */
	WAY_COUNT,
};

enum {
	/* Requests that are drawn, issued and polled for together, in all ways;
	 * as in the paper. */
	OFFLOAD_BATCH = 100,
	OFFLOAD_DEPTH = 2048, /* requests under way */
	OFFLOAD_REDY_BATCH = 64,
	OFFLOAD_NAME_MAX = 40,
	OFFLOAD_PATH_MAX = 256,
};

/* Settings of the run. Made before the measured processes, which inherit it. */
struct offload_config {
	uint64_t probe_records;
	uint64_t log_bytes;	    /* of records in a store */
	char dir[OFFLOAD_PATH_MAX]; /* for the file */
};

/* Parameters of one subject. */
struct offload_param {
	const struct offload_config *cfg;
	enum offload_way way;
	uint32_t record_bytes;
	uint32_t depth; /* reads at a time, where times are taken */
	bool is_timed;	/* the time inside the library is taken */
	bool is_lean;	/* the index is looked up in batches, too */
	bool is_scan;	/* far records one behind the other, no index */
	bool is_each;	/* a doorbell for each READ */
	bool is_at_switch;
	char name[OFFLOAD_NAME_MAX];
};

extern const struct side_ops offload_probe_ops;	  /* the hash probe */
extern const struct side_ops offload_latency_ops; /* times of reads */
extern const struct side_ops offload_caller_ops;  /* issue and poll alone */
extern const struct side_ops offload_log_ops;	  /* the store, YCSB-C */
extern const struct side_ops offload_frames_ops;  /* forwarding, no records */

const char *offload_way_name(enum offload_way way);

/* ---- the plan (offload_plan.c) ------------------------------------------ */

enum {
	OFFLOAD_GROUP_MAX = 16,
	OFFLOAD_TEXT_MAX = 96,
};

struct offload_subject {
	struct subject_desc desc;
	struct offload_param param;
	char what[OFFLOAD_TEXT_MAX];
};

/* Data beside the conduct_group of the same index. */
struct offload_group {
	const struct side_ops *ops;
	uint32_t record_bytes;
	bool is_at_switch; /* it runs in the rack with the switch */
	struct offload_subject subject[CONDUCT_GROUP_MAX];
};

struct offload_plan {
	struct offload_config cfg;
	unsigned group_count;
	/* Those of the rack with a switch are the last ones. */
	struct conduct_group group[OFFLOAD_GROUP_MAX];
	struct offload_group more[OFFLOAD_GROUP_MAX];
};

void offload_plan_init(struct offload_plan *out);
extern const struct bench_ratio offload_ratios[];

/* ---- where the records are ---------------------------------------------- */

/* One side's end of one way. */
struct offload_far {
	struct aq_rack *rack;
	struct aq_region *region;
	struct hlog_device *device;
	struct client_link *link; /* to the other side, two-sided */
	uint8_t *memory;	  /* the server's */
	size_t memory_bytes;
	struct redy_port *port;
	char region_name[AQ_REGION_NAME_MAX + 1];
	char path[OFFLOAD_PATH_MAX + 64];
};

/*
 * Opens the device of the parameter's way. `region` names the far memory in the
 * rack; it is made if it does not exist. Ways with a server connect to it over
 * s->peer_fd. WAY_LOCAL is memory of this process.
 */
int offload_far_open(struct side *s, struct offload_far *far,
		     const char *region, uint64_t size_bytes, uint32_t read_max)
	__attribute__((warn_unused_result));
int offload_far_open_server(struct side *s, struct offload_far *far,
			    uint64_t size_bytes, uint32_t read_max)
	__attribute__((warn_unused_result));
/* The server's part of a round. */
int offload_far_serve(struct side *s, struct offload_far *far)
	__attribute__((warn_unused_result));
void offload_far_close(struct offload_far *far);

/* How the application attaches, where its requests go through rings. */
struct aq_async_options offload_async_options(enum offload_way way);
static inline bool offload_way_has_rings(enum offload_way way)
{
	return way == WAY_COW || way == WAY_COW_ALONE || way == WAY_COW_READS ||
	       way == WAY_COW_BESIDE || way == WAY_P4 || way == WAY_SPOT;
}

/* Whether the way needs the server half. */
static inline bool offload_way_has_server(enum offload_way way)
{
	return way == WAY_TWO_SIDED || way == WAY_REDY;
}

/* ---- the rack ----------------------------------------------------------- */

struct subject_world;

/* The switch with the program, and one without. */
#define OFFLOAD_SWITCH	    "s1"
#define OFFLOAD_SWITCH_BARE "s2"

/* What is read of a rack before and after each round, by place. */
enum offload_read {
	OFFLOAD_READ_PACKETS, /* of all NICs */
	OFFLOAD_READ_BYTES,
	OFFLOAD_READ_SWITCH_IN, /* frames that reach the switch */
	OFFLOAD_READ_SWITCH_MADE,
	OFFLOAD_READ_APP_WRITES,
	OFFLOAD_READ_APP_BYTES,
	OFFLOAD_READ_PROBES,
	OFFLOAD_READ_NS, /* the clock */
	OFFLOAD_READ_COUNT,
};

/* Starts a rack of its own, and sets the environment for it. */
struct offload_rack;
int offload_rack_start(uint64_t pool_bytes, struct offload_rack **out)
	__attribute__((warn_unused_result));
/* The same on any core, as users start it. */
int offload_rack_start_anywhere(uint64_t pool_bytes, struct offload_rack **out)
	__attribute__((warn_unused_result));
/* The same with all NICs at OFFLOAD_SWITCH, and an engine of either kind. */
int offload_rack_start_switch(uint64_t pool_bytes, struct offload_rack **out)
	__attribute__((warn_unused_result));
/* Two memory nodes, and all NICs at a switch that carries walks on. */
int offload_rack_start_walks(uint64_t pool_bytes, struct offload_rack **out)
	__attribute__((warn_unused_result));
/* Counters of the switch with the program, from OFFLOAD_READ_SWITCH_IN on. */
int offload_switch_read(double out[OFFLOAD_READ_COUNT])
	__attribute__((warn_unused_result));
/* Its processes and the counters of all of them. */
const struct subject_world *offload_rack_world(const struct offload_rack *r);
void offload_rack_stop(struct offload_rack *r);

/* Makes and fills the regions of the hash probe with records of these sizes; in
 * a child, so that this process has no NIC of its own. */
int offload_prepare(const struct offload_config *cfg, const uint32_t *sizes,
		    unsigned size_count) __attribute__((warn_unused_result));
void offload_probe_region(char name[OFFLOAD_NAME_MAX], uint32_t record_bytes);

#endif
