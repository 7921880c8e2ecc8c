/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who executes walks at a simulated memory node, on virtual time: the PULSE
 * paper's accelerator with its memory and logic pipelines and workspaces, or
 * the cores of a server. It is the walker of the shipped NIC, which brings it
 * requests, says where memory is and sends its answers; programs run in the
 * shipped executor. What is a model here is when things happen.
 *
 * A request has a workspace (or a core) until it ends. An iteration is a load,
 * which one memory pipeline and the memory's bus are busy with, and then its
 * instructions, which one logic pipeline is busy with.
 *
 * A walk whose next node is elsewhere goes back to the client, or, with
 * `others`, it goes on there after hop_ps, as a programmable switch would send
 * it on; the answer then leaves through the first node's NIC. That way is a
 * model: no packet is sent.
 */
#ifndef AQ_FIGURES_WFIG_PIPES_H
#define AQ_FIGURES_WFIG_PIPES_H

#include <aquifer/aqdv.h>

#include "rig/stage.h"
#include "wfig_data.h"

enum {
	WFIG_PIPES_MAX = 32, /* of a kind */
};

struct wfig_pipes_config {
	uint32_t spaces, memory, logic;
	uint64_t request_ps; /* before the first load */
	uint64_t sched_ps;   /* before every load */
	uint64_t load_ps;
	uint64_t hold_ps; /* of a memory pipeline, by one load */
	uint64_t bus_ps;  /* of the memory's bus, by one load */
	uint64_t step_ps; /* per instruction */
	uint64_t hop_ps;
};

/* Sums over all iterations. */
struct wfig_pipes_sums {
	uint64_t iterations;
	uint64_t memory_ps; /* from the request of a load to its data */
	uint64_t logic_ps;
	uint64_t wait_ps; /* of it, for pipelines and the bus */
	uint64_t memory_busy_ps, logic_busy_ps, bus_busy_ps;
};

struct wfig_pipes;

/* Becomes the walker of the node's NIC, whose piece of the data this is. */
int wfig_pipes_open(struct rig_host *host, const struct wfig_data *d,
		    uint32_t node, const struct wfig_pipes_config *cfg,
		    struct wfig_pipes **out) MUST_CHECK;
/* Walks go on at these by themselves; `count` of them, by node. */
void wfig_pipes_join(struct wfig_pipes *p, struct wfig_pipes *const *others,
		     uint32_t count);
/* The piece's bytes as the node has them. */
void wfig_pipes_memory(struct wfig_pipes *p, uint8_t *bytes);
void wfig_pipes_reset(struct wfig_pipes *p); /* the sums */
const struct wfig_pipes_sums *wfig_pipes_sums(const struct wfig_pipes *p);
/* After the stage was destroyed. */
void wfig_pipes_close(struct wfig_pipes *p);

#endif
