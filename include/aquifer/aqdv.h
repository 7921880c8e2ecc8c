/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct verbs of the Aquifer NIC: what <infiniband/verbs.h> cannot say.
 *
 * Every function may be called with a device, context or queue pair of any
 * library. On one that is not ours it changes nothing and returns -EOPNOTSUPP,
 * so a program asks aqdv_query_device() once and then knows what to do without.
 *
 * Errors: 0 or -errno. Threads: as for the verbs they stand beside; posting to
 * one queue pair from several threads is allowed.
 */
#ifndef AQUIFER_AQDV_H
#define AQUIFER_AQDV_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the device is an Aquifer NIC. Any pointer that ibv_get_device_list
 * returned, of whatever library, as long as its list is not freed. */
bool aqdv_is_supported(struct ibv_device *device);

enum aqdv_cap {
	AQDV_CAP_MASKED_CAS = 1u << 0, /* aqdv_post_masked_cas */
	AQDV_CAP_MASKED_FAA = 1u << 1, /* aqdv_post_masked_faa */
	AQDV_CAP_DIRECT = 1u << 2, /* aqdv_alloc: peers on this host map it */
	AQDV_CAP_CHAINS = 1u << 3, /* WAIT/ENABLE, writable work queues */
};

struct aqdv_device_attr {
	uint32_t comp_mask; /* in and out: 0 */
	uint32_t caps;	    /* AQDV_CAP_* */
	/* Widest field of a masked atomic, in bytes. */
	uint32_t masked_atomic_max_bytes;
	uint32_t reserved;
};

/* What this context can do. -EINVAL for a comp_mask with unknown bits. */
int aqdv_query_device(struct ibv_context *context,
		      struct aqdv_device_attr *attr);

/*
 * One masked atomic on eight aligned bytes of remote memory. The original value
 * is stored in the first eight bytes of sg_list, in host byte order. It takes
 * a slot of the send queue and completes like IBV_WR_ATOMIC_CMP_AND_SWP or
 * IBV_WR_ATOMIC_FETCH_AND_ADD, with the same rights.
 */
struct aqdv_masked_wr {
	uint64_t wr_id;
	struct aqdv_masked_wr *next;
	struct ibv_sge *sg_list;
	int num_sge;
	unsigned send_flags; /* enum ibv_send_flags; no IBV_SEND_INLINE */
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t reserved;
	union {
		/*
		 * If the remote value equals `compare` in all bits that
		 * compare_mask has, then the bits that swap_mask has are
		 * replaced by those of `swap`. All-ones in both masks is the
		 * plain compare-and-swap.
		 */
		struct {
			uint64_t compare;
			uint64_t compare_mask;
			uint64_t swap;
			uint64_t swap_mask;
		} cas;
		/*
		 * Adds several fields at once: a bit set in `boundary` is the
		 * topmost bit of a field, and no carry leaves it. 0 is the
		 * plain fetch-and-add.
		 */
		struct {
			uint64_t add;
			uint64_t boundary;
		} faa;
	};
};

/* Post a list to a connected queue pair, as ibv_post_send does. On failure
 * *bad_wr is the first request that was not posted. */
int aqdv_post_masked_cas(struct ibv_qp *qp, struct aqdv_masked_wr *wr,
			 struct aqdv_masked_wr **bad_wr);
int aqdv_post_masked_faa(struct ibv_qp *qp, struct aqdv_masked_wr *wr,
			 struct aqdv_masked_wr **bad_wr);

enum aqdv_alloc_flags {
	AQDV_ALLOC_READ_ONLY = 1u << 0, /* peers may read it, never write */
};

/*
 * Whole zeroed pages that peers on this host may map, so that one-sided
 * operations on them become loads and stores. Register them with ibv_reg_mr
 * like any memory; without a registration nobody maps anything. Inside such a
 * registration the peer is trusted not to look beside its own operations.
 * aqdv_free takes the address back and revokes every mapping; deregister first.
 */
int aqdv_alloc(struct ibv_context *context, size_t len_bytes, unsigned flags,
	       void **addr);
int aqdv_free(struct ibv_context *context, void *addr);

/* One READ that is done at once. */
struct aqdv_read {
	uint64_t remote_addr;
	void *to; /* any memory of the caller's */
	uint32_t rkey;
	uint32_t len_bytes;
};

/*
 * READs of memory of a peer on this host that may be mapped (aqdv_alloc), as
 * loads, here and now: they take no place in the send queue, need no local key
 * and give no completion. Returns how many were done, from the first on; the
 * rest must be posted, as always where the memory is elsewhere or something is
 * under way on the queue pair. What was read is at least as new as the call.
 */
int aqdv_read_now(struct ibv_qp *qp, const struct aqdv_read *reads,
		  unsigned count);

/*
 * Whether the process at the other end of a connection is known to be gone: 1
 * or 0. Only a queue pair that was given no retry timer (attribute timeout 0)
 * knows, and only where the way to the peer has an end that shows, as between
 * processes of one host; it is for the side that never sends and would not
 * find out otherwise.
 */
int aqdv_peer_gone(struct ibv_qp *qp);

/*
 * The general services queue pair of the device (QP1), for who speaks the
 * management protocols; `init` asks for a UD queue pair. It receives what is
 * sent to its own number and what is sent to the number 1. NULL with errno
 * EBUSY: this process has it already.
 */
struct ibv_qp *aqdv_create_gsi(struct ibv_pd *pd,
			       struct ibv_qp_init_attr *init);

/* The value of one of the NIC's counters, by name: "rx_frames", "drop_icrc"...
 * -ENOENT when there is none of that name. */
int aqdv_get_counter(struct ibv_context *context, const char *name,
		     uint64_t *value);
/* The names, from 0 on; NULL at the end. */
const char *aqdv_counter_name(unsigned index);

#ifdef __cplusplus
}
#endif

#endif
