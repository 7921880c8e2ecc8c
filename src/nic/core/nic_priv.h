/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NIC: what it has beside its objects, which have headers of their own. All
 * of them belong to the holder of the host's lock, except the two indices of a
 * completion queue (see cq.c).
 */
#ifndef AQ_NIC_PRIV_H
#define AQ_NIC_PRIV_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/timer.h"
#include "chain.h"
#include "guess_priv.h"
#include "key_priv.h"
#include "nic.h"
#include "nic_limits.h"
#include "ud_priv.h"
#include "wire/wire_stamps.h"

struct nic {
	struct env *env;
	struct nic_config cfg;
	const struct nic_upcalls *up;
	uint64_t *counters;
	uint64_t *own_counters;
	struct nic_qp **qps; /* by the low bits of the QPN */
	struct list ready;   /* domains whose QPs have something to send */
	struct list held;    /* QPs whose acknowledgement waits */
	bool holds_acks;
	atomic_uint held_most; /* the most messages that one of them covers */
	struct key_table keys;
	struct timer_wheel wheel;
	struct guess guess;
	atomic_uint outstanding;
	uint32_t qp_count;
	uint32_t cq_count;
	uint32_t srq_count;
	uint32_t pd_count;
	uint32_t ah_count;
	uint32_t srq_numbers;
	uint64_t dm_used;
	uint32_t ud_path_count;
	struct ud_path ud_paths[NIC_UD_PATH_MAX];
	struct cq_numbers counting;
	uint64_t turn_end; /* when nic_work is that much, the turn is over */
	uint32_t crowd;	   /* flushes in which domains share */
	uint32_t flush;	   /* how many there were */
	struct nic_pd *last_domain; /* that did something, or NULL */
	uint32_t least_used;	    /* by one domain, when there were others */
	uint64_t chain_bytes;	    /* that chains moved within this NIC */
	uint64_t input_work;	    /* when nic_take_domain was called last */
	struct nic_pd *input_pd;    /* of the last packet taken, or NULL */
	union {			    /* nic_flush asks for both at once */
		struct {
			bool chains_due; /* a chain has its turn before
					  * nic_flush returns */
			bool walk_due;	 /* the walker has its turn in it */
		};
		uint16_t any_due;
	};
	uint32_t walking; /* walks that run or wait */
	struct nic_walker walker;
	struct list walk_waits; /* domains whose walks wait */
	struct wire_stamps stamps;
};

static inline void count(struct nic *nic, enum nic_counter c)
{
	nic->counters[c]++;
}

/* Is it an address of this NIC? */
bool nic_is_ours(const struct nic *nic, const uint8_t ip[16]);
/* The MTU of the port, as enum ibv_mtu. */
enum ibv_mtu nic_active_mtu(const struct nic *nic);

/* The source port for a path: `any` where the env does not care. */
static inline uint16_t nic_src_port(const struct nic *nic,
				    struct env_path *path, uint16_t any)
{
	const struct env_ops *ops = nic->env->ops;
	uint16_t port = path && ops->path_src_port
				? ops->path_src_port(nic->env, path)
				: 0;

	return port ? port : any;
}

/* The env has all frames of this turn and should send them. */
static inline void nic_tx_flush(struct nic *nic, bool more)
{
	if (nic->env->ops->tx_flush)
		nic->env->ops->tx_flush(nic->env, more);
}

#endif
