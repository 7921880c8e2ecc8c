/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The costs of a host with a 100 Gb/s RNIC: times of posting, sending,
 * receiving and executing operations, on virtual time. Knows no event queue:
 * each call says when a step ends if it starts at `now`, and books what it
 * occupies.
 *
 * Times are picoseconds of virtual time. Calls on one model_nic must come in
 * the order of their `now`; the same seed and calls give the same times.
 * Ownership: one thread at a time.
 */
#ifndef AQ_SIM_MODEL_H
#define AQ_SIM_MODEL_H

#include "base/base.h"
#include "model_constants.h"

struct model_params {
	MODEL_CONSTANTS(MODEL_FIELD)
};

/* The values of model_constants.h: a ConnectX-5 in a Xeon E5 host. */
extern const struct model_params model_connectx5;

enum model_kind {
	MODEL_READ,
	MODEL_WRITE,
	MODEL_SEND,
	MODEL_CAS, /* also masked */
	MODEL_FAA, /* also masked */
};

struct model_op {
	enum model_kind kind;
	uint32_t bytes; /* payload; 8 for atomics */
	uint32_t qpn;	/* of the NIC that the call is about */
	uint64_t addr;	/* remote address */
	bool in_device; /* remote address is NIC memory */
	/* A further packet of a message whose first packet was passed already:
	 * `bytes` more, without the cost per message. */
	bool continues;
	/* A processor is told of its arrival once it is in memory. */
	bool notifies;
	/* Queue pairs of the sending NIC with work queued, this one included.
	 */
	uint32_t active_qps;
};

struct model_nic;

int MUST_CHECK model_nic_create(const struct model_params *params,
				uint64_t seed, struct model_nic **out);
void model_nic_destroy(struct model_nic *nic);

/* Bytes on the wire, preamble and gap included, of a whole message. */
uint64_t model_request_bytes(const struct model_params *p,
			     const struct model_op *op);
uint64_t model_response_bytes(const struct model_params *p,
			      const struct model_op *op);

/* The time from the last bit leaving one NIC until it reaches the other. */
uint64_t model_path_ps(const struct model_params *p, unsigned switches);

/* DMA of `bytes` over an idle PCIe bus, without the round trip. */
uint64_t model_pcie_ps(const struct model_params *p, uint64_t bytes);

/*
 * A CPU posts `wqes` work requests with one doorbell at `now`: when the NIC
 * has them. Few of them travel with the doorbell; more are fetched.
 */
uint64_t model_post(struct model_nic *nic, const struct model_op *op,
		    uint32_t wqes, uint64_t now);

/* One more request behind a doorbell that was passed already; its entry is
 * fetched with the others. */
uint64_t model_post_more(struct model_nic *nic, uint64_t now);

/* The NIC sends the request of `op`: when its last bit is on the wire. */
uint64_t model_tx_request(struct model_nic *nic, const struct model_op *op,
			  uint64_t now);

/*
 * The request arrived: when it has taken effect and its response may be sent.
 * A WRITE is acknowledged before its data has crossed PCIe; *memory_ps (may be
 * NULL) is when a CPU of this host can see it.
 */
uint64_t model_rx_request(struct model_nic *nic, const struct model_op *op,
			  uint64_t now, uint64_t *memory_ps);

/* The response (data, old value or acknowledgement) is sent. */
uint64_t model_tx_response(struct model_nic *nic, const struct model_op *op,
			   uint64_t now);

/* The response arrived at the requester: when its CPU sees the completion. */
uint64_t model_complete(struct model_nic *nic, const struct model_op *op,
			uint64_t now);

/*
 * A work request of a chain on this NIC whose target is this host's own
 * memory: its entry is fetched (if not `fetched` with the one before), it is
 * executed and its result written to `sges` places. Returns when the next one
 * may start: with the result of a READ or atomic, right after a WRITE began.
 */
uint64_t model_chain_local(struct model_nic *nic, const struct model_op *op,
			   uint32_t sges, bool fetched, uint64_t now);
/* The same for one whose target is elsewhere: when its last bit is sent. */
uint64_t model_chain_remote(struct model_nic *nic, const struct model_op *op,
			    bool fetched, uint64_t now);
/* Only fetches the entry, for callers that send the rest as a request. */
uint64_t model_chain_fetch(struct model_nic *nic, uint64_t now);
/* WAIT or ENABLE. */
uint64_t model_chain_order(struct model_nic *nic, uint64_t now);

/* Counters, for tests and reports. */
struct model_counters {
	uint64_t ops;
	uint64_t qp_misses;
	uint64_t stalls;
	uint64_t atomic_waits; /* atomics that found their bucket busy */
};
void model_nic_counters(const struct model_nic *nic,
			struct model_counters *out);

#endif
