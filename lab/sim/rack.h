/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated rack: hosts on one network, each with a NIC that is a verbs
 * device of this process. Programs open the devices by name ("sim0", ...) and
 * use them from fibers.
 */
#ifndef AQ_SIM_RACK_H
#define AQ_SIM_RACK_H

#include "core/nic_host.h"
#include "net.h"
#include "sim.h"

struct sim_rack;
struct sim_host;
struct nic_chain_step;

/*
 * The cost of hardware. Both return the time, now or later, at which the frame
 * takes effect: an arrived frame enters the NIC's logic, a built frame may
 * leave through the link. Frames of one queue pair must keep their order;
 * across queue pairs the model may reorder. The third says when a request of a
 * chain, which has its turn now, is executed. NULL functions cost nothing.
 */
struct sim_host_model {
	void *ctx;
	uint64_t (*rx_ready_ps)(void *ctx, struct sim_host *host,
				const uint8_t *frame, size_t len_bytes);
	uint64_t (*tx_ready_ps)(void *ctx, struct sim_host *host,
				const uint8_t *frame, size_t len_bytes);
	uint64_t (*chain_ready_ps)(void *ctx, struct sim_host *host,
				   const struct nic_chain_step *step);
};

struct sim_host_config {
	struct sim_link link;
	uint64_t rx_batch_ps;  /* arrivals wait for a multiple of this; 0: no */
	uint64_t relax_ps;     /* how late a poller sees news; 0: 100 ns */
	uint64_t relax_max_ps; /* it looks at least this often; 0: 1 ms */
	/* The sender of a frame is known, as on cables: the NIC is told the
	 * number of the sender's port, plus one, instead of a slot. Else all
	 * frames come from a network, where every host may use any address. */
	bool knows_senders;
	const struct nic_witness *witness; /* NULL: none */
	uint64_t chain_ps; /* per request of a chain, without a model; 0: 0 */
	struct sim_host_model model;
};

int sim_rack_create(struct sim *sim, struct sim_rack **out) MUST_CHECK;
/* Every device must have been closed. */
void sim_rack_destroy(struct sim_rack *rack);
struct sim_net *sim_rack_net(struct sim_rack *rack);
/* For verbs_set_provider; lives as long as the rack. */
const struct nic_provider *sim_rack_provider(struct sim_rack *rack);

int sim_host_add(struct sim_rack *rack, const struct sim_host_config *cfg,
		 struct sim_host **out) MUST_CHECK;
unsigned sim_host_index(const struct sim_host *host); /* the device's, too */
struct env *sim_host_env(struct sim_host *host);
struct sim_port *sim_host_port(struct sim_host *host);
/* Now has the NIC something to send by an event that is not its own, such as
 * the end of a walk. */
void sim_host_flush(struct sim_host *host);
/* Frames that are no RDMA go there when they have come through the NIC, which
 * takes none of them then. */
void sim_host_set_other(struct sim_host *host,
			void (*fn)(void *ctx, const uint8_t *frame,
				   size_t len_bytes),
			void *ctx);
/* NULL while the device is not open. */
struct nic *sim_host_nic(struct sim_host *host);
/* The NIC's counters, kept over closing and opening. */
uint64_t sim_host_counter(const struct sim_host *host, enum nic_counter c);

/* The host is gone: it neither sends nor receives, its timers stand still. Its
 * objects can still be destroyed. */
void sim_host_crash(struct sim_host *host);
/* `host` learns that `peer` is gone for good: nic_path_down. */
void sim_host_path_down(struct sim_host *host, const struct sim_host *peer);

#endif
