/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct verbs of the Aquifer NIC: what <infiniband/verbs.h> has no call for.
 *
 * Every function may be called with a device, context or queue pair of any
 * library. On an object of another library it changes nothing and returns
 * -EOPNOTSUPP, so a program asks aqdv_query_device() once and then knows what
 * it must do without.
 *
 * Errors: 0 or -errno. Threads: the rules of the corresponding verbs hold;
 * several threads may post to one queue pair.
 */
#ifndef AQUIFER_AQDV_H
#define AQUIFER_AQDV_H

#include <aquifer/aqdv_wqe.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the device is an Aquifer NIC. `device` may come from
 * ibv_get_device_list of any library, as long as that list is not freed. */
bool aqdv_is_supported(struct ibv_device *device);

/*
 * As ibv_open_device, in a rack by its name; NULL is the rack of the settings.
 * NICs see only those of their rack on this host, and a process may be in
 * several racks at once. NULL with errno: ENODEV for a device that is not ours,
 * EINVAL for a name that no rack can have, EMFILE when the process has too many
 * open.
 */
struct ibv_context *aqdv_open_device(struct ibv_device *device,
				     const char *rack);

enum aqdv_cap {
	AQDV_CAP_MASKED_CAS = 1u << 0, /* aqdv_post_masked_cas */
	AQDV_CAP_MASKED_FAA = 1u << 1, /* aqdv_post_masked_faa */
	AQDV_CAP_DIRECT = 1u << 2, /* aqdv_alloc: peers on this host map it */
	AQDV_CAP_CHAINS = 1u << 3, /* WAIT/ENABLE, writable work queues */
	AQDV_CAP_AUTH = 1u << 4,   /* aqdv_qp_set_auth */
	AQDV_CAP_WALK = 1u << 5,   /* aqdv_post_walk, aqdv_set_walker */
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
	AQDV_ALLOC_SPARSE = 1u << 1,	/* pages exist once they are touched */
};

/*
 * Whole zeroed pages that peers on this host may map, so that one-sided
 * operations on them become loads and stores. Register them with ibv_reg_mr
 * like any memory; without a registration no peer can map them. A peer with
 * such a mapping can reach all of the registration, also outside its
 * operations. aqdv_free takes the address back and revokes every mapping;
 * deregister first.
 *
 * With AQDV_ALLOC_SPARSE a page takes memory only once it was read or written;
 * its owner gives it back by madvise(MADV_REMOVE), for all processes that map
 * it. A peer that may write can touch all pages, but not add any. Where memory
 * runs out, a touch is an error completion (a peer's operation) or SIGBUS (the
 * owner).
 */
int aqdv_alloc(struct ibv_context *context, size_t len_bytes, unsigned flags,
	       void **addr);
int aqdv_free(struct ibv_context *context, void *addr);
/* How much memory the pages at an address of aqdv_alloc take now. */
int aqdv_alloc_used(struct ibv_context *context, void *addr,
		    uint64_t *used_bytes);

/* Whether no peer ever had pages of that address mapped: 1 or 0. Once nothing
 * is registered there, they can serve another purpose without being freed. */
int aqdv_alloc_private(struct ibv_context *context, void *addr);

/* One READ that is done at once. */
struct aqdv_read {
	uint64_t remote_addr;
	void *to; /* any memory of the caller's */
	uint32_t rkey;
	uint32_t len_bytes;
};

/*
 * Executes READs of memory of a peer on this host that may be mapped
 * (aqdv_alloc) as loads, before it returns: they take no place in the send
 * queue, need no local key and give no completion. Returns how many were done,
 * from the first on; the caller must post the rest. That is all of them where
 * the memory is elsewhere or something is under way on the queue pair. What was
 * read is at least as new as the call.
 */
int aqdv_read_now(struct ibv_qp *qp, const struct aqdv_read *reads,
		  unsigned count);

/*
 * For a thread that waits for completions and has nothing else to do: moves the
 * NIC's frames, and if there are none sleeps until one comes, at most for
 * max_us. It is woken by the frame itself, and not by the NIC's thread, which
 * would have to be woken before. 0: look at the queues; with 0 as max_us: the
 * thread will sleep otherwise now. -EAGAIN: it cannot sleep now; -EOPNOTSUPP:
 * not on this NIC.
 */
int aqdv_doze(struct ibv_context *context, uint32_t max_us);

/*
 * Whether the process at the other end of a connection is known to be gone: 1
 * or 0; only where the port notices the end of a peer, as between processes of
 * one host. It is for the side that waits for requests and would not find out
 * otherwise. Requests of a queue pair with a retry timer fail when its retries
 * have run out, all the same.
 */
int aqdv_peer_gone(struct ibv_qp *qp);

/*
 * Asks the peer of an idle connection for a sign of life; qp_num is the number
 * of a queue pair of this device in this process. The peer sees a repeated
 * packet, which any adapter acknowledges. 1: the peer has given no sign since
 * the last call, or the queue pair failed with IBV_WC_RETRY_EXC_ERR. 0: it has,
 * or was not asked, because requests are under way or the queue pair is not in
 * RTS. -EINVAL: no such connection.
 */
int aqdv_probe_peer(struct ibv_context *context, uint32_t qp_num);

/*
 * The largest path MTU with which packets reach an address in one piece, at
 * most the port's active one; the answer may change. A queue pair with a larger
 * MTU works as well where both ends are soft NICs on UDP, but its packets are
 * fragmented.
 */
int aqdv_query_path_mtu(struct ibv_context *context, const union ibv_gid *dgid,
			enum ibv_mtu *mtu);

/*
 * The general services queue pair of the device (QP1), for programs that speak
 * the management protocols; `init` asks for a UD queue pair. It receives what
 * is sent to its own number and what is sent to the number 1. NULL with errno
 * EBUSY: this process has it already.
 */
struct ibv_qp *aqdv_create_gsi(struct ibv_pd *pd,
			       struct ibv_qp_init_attr *init);

/* ---- chains of work requests --------------------------------------------
 *
 * A managed queue pair (RC) takes its work requests from rings in memory that
 * the caller registered, laid out as aqdv_wqe.h says; nothing is posted to it.
 * The NIC fetches a request only when it executes it, so it executes what a
 * RECV, READ, WRITE or atomic stored there by then. WAIT and ENABLE requests
 * order the queues among each other; see docs/chains.md.
 *
 * Requests on a queue pair that is connected to another one of the same device
 * are executed at once, without a packet.
 *
 * Each read of a ring is checked like an access with its key. A request that
 * is malformed or touches what it may not fails with an error completion, ends
 * its queue pair and nothing else. So does a queue that executes more than
 * max_steps requests that no message from another device and no call of
 * aqdv_enable_* has paid for (counter chain_runaways).
 */

enum aqdv_chain_flags {
	/* A request is fetched when the one before it has completed. */
	AQDV_CHAIN_ORDERED = 1u << 0,
	/* All of the send queue is enabled for ever; only WAIT stops it. */
	AQDV_CHAIN_CYCLIC = 1u << 1,
};

#define AQDV_CHAIN_STEPS_DEFAULT 4096u
#define AQDV_CHAIN_STEPS_MAX	 (1u << 20)

struct aqdv_chain_attr {
	uint32_t comp_mask; /* 0 */
	uint32_t flags;	    /* AQDV_CHAIN_* */
	/* The ring of send requests: 64-byte aligned, up to 16384 blocks. 0
	 * blocks: an ordinary send queue. */
	uint64_t sq_addr;
	uint32_t sq_lkey; /* with IBV_ACCESS_LOCAL_WRITE where a step is used */
	uint32_t sq_blocks;
	/* The ring of receives: 16-byte aligned, a power of two of entries, up
	 * to 16384, of rq_segs data segments each (a power of two, up to 32).
	 * 0 entries: an ordinary receive queue. */
	uint64_t rq_addr;
	uint32_t rq_lkey;
	uint32_t rq_entries;
	uint32_t rq_segs;
	/* If not 0: a big-endian 32-bit doorbell record, 4-byte aligned, read
	 * when a message finds no receive: how many were enabled in all. */
	uint32_t rq_dbr_lkey;
	uint64_t rq_dbr_addr;
	uint32_t max_steps; /* 0: AQDV_CHAIN_STEPS_DEFAULT */
	uint32_t reserved;
};

/* `init` as for ibv_create_qp, IBV_QPT_RC, no SRQ; the sizes of managed queues
 * in init->cap are ignored. A send completion's wr_id is the number of the
 * request's first block, counted from 0 since the queue was made. Nothing is
 * enabled at first. NULL with errno. */
struct ibv_qp *aqdv_create_chain_qp(struct ibv_pd *pd,
				    struct ibv_qp_init_attr *init,
				    const struct aqdv_chain_attr *attr);

/* How many blocks of the send queue, or receives, may be executed since the
 * queue pair was made. -EINVAL: not managed, or more than a ring ahead. */
int aqdv_enable_send(struct ibv_qp *qp, uint32_t index);
int aqdv_enable_recv(struct ibv_qp *qp, uint32_t index);

/*
 * Makes a CQ that has not been used yet one that WAIT can name: successful
 * completions are only counted, failed ones can be polled as usual (as many as
 * it has room for). *number is its number in WAIT.
 */
int aqdv_count_cq(struct ibv_cq *cq, uint32_t *number);
/* How many successful completions it has counted. */
int aqdv_cq_count(struct ibv_cq *cq, uint32_t *count);

/*
 * The NIC serves protection domains by turns, so that one with much to do does
 * not keep others waiting. This one has no turns of its own but those of
 * `with`, as if their queue pairs were in one domain: for who has two because
 * of the rights, and should not be served twice. Before anything else is made
 * in it; it must end before `with` does. -EINVAL: in use, or not of one
 * device.
 */
int aqdv_share_turns(struct ibv_pd *pd, struct ibv_pd *with);

/*
 * From RTR on every packet of this reliable connection carries a message
 * authentication code where it goes over a network: a host without the key can
 * neither add nor change a packet, nor send an old one again. Between processes
 * of one host, whose packets are bound to their cable, it changes nothing. Give
 * both ends the same AQDV_AUTH_KEY_BYTES random bytes, in RESET or INIT, over a
 * channel that strangers cannot read; RESET forgets them, and no second
 * connection may use them. Packets of a peer without the key are dropped
 * (counter drop_auth). -EINVAL: another length, state or type.
 */
#define AQDV_AUTH_KEY_BYTES 32

int aqdv_qp_set_auth(struct ibv_qp *qp, const void *key, size_t len_bytes);

/* ---- walks ---------------------------------------------------------------
 *
 * A walk is a READ that follows pointers. A request names a key, an offset
 * where to begin, a program and how many iterations it may make, and brings the
 * first bytes of a scratch pad; the peer's walker executes the program on
 * memory of that key, and the answer brings the pad. Request and answer are one
 * packet each. Sequence, rights, resources, retransmission and completion are
 * those of a READ: it needs IBV_ACCESS_REMOTE_READ and a place among
 * max_rd_atomic, and completes as IBV_WC_RDMA_READ. A walk is executed once,
 * whatever is lost: a request that comes again gets the answer that is kept.
 *
 * Walks of a queue pair are executed side by side, and beside what is posted
 * after them; IBV_SEND_FENCE waits for those before it. What was posted before
 * a walk is done before it begins, as for a READ.
 */

/* How a walk ended. */
enum aqdv_walk_status {
	AQDV_WALK_DONE = 0,	  /* the program is done */
	AQDV_WALK_MORE = 1,	  /* no iterations left; goes on at `at` */
	AQDV_WALK_ELSEWHERE = 2,  /* `at` is on another node */
	AQDV_WALK_FAULT = 3,	  /* `at` is no place where a node can be */
	AQDV_WALK_FAIL = 4,	  /* the program says so; `at`: its code */
	AQDV_WALK_NO_PROGRAM = 5, /* the peer has no such program */
	/* It stores, and the key is read-only; or, if it made iterations, the
	 * key was taken back meanwhile, and it can go on at `at` with another.
	 */
	AQDV_WALK_NO_RIGHT = 6,
};

/* The first bytes of the scatter list of a walk that has completed. */
struct aqdv_walk_result {
	uint64_t at;	    /* where it stands, as aqdv_walk_status says */
	uint64_t program;   /* which one it was */
	uint32_t space;	    /* of aqdv_set_place; 0: none */
	uint32_t left;	    /* iterations that it did not make */
	uint32_t took;	    /* iterations that it made */
	uint16_t pad_bytes; /* of the pad, which follows the result */
	uint8_t status;	    /* enum aqdv_walk_status */
	/* From node to node on the way, carried by a switch; AQDV_WALK_STAYS if
	 * it was to be, and cannot go further, as one that stores. */
	uint8_t hops;
};

#define AQDV_WALK_STAYS 255u

#define AQDV_WALK_RESULT_BYTES 32u
/* Of the path MTU, what is not left for the pad. */
#define AQDV_WALK_OVERHEAD_BYTES 64u

/*
 * sg_list is written when the walk completes: a struct aqdv_walk_result, then
 * the pad. Its length beyond the result is what the answer may bring of the
 * pad, at most the path MTU without AQDV_WALK_OVERHEAD_BYTES. Until then the
 * first send_bytes behind the result are what the request brings; they must
 * stay as they are, because they may be sent again.
 */
struct aqdv_walk_wr {
	uint64_t wr_id;
	struct aqdv_walk_wr *next;
	struct ibv_sge *sg_list;
	int num_sge;
	unsigned send_flags; /* IBV_SEND_SIGNALED, _FENCE */
	uint64_t at;	     /* where it begins: an offset in the region */
	uint64_t program;
	uint32_t rkey;
	uint32_t iterations; /* that it may make; the peer may allow less */
	uint32_t send_bytes;
	uint32_t flags; /* enum aqdv_walk_flags */
	/* Requests that are posted right before it and leave with it: the WRITE
	 * of a new node, for a walk that links it. NULL: none. Where the list
	 * is cut off at a walk, these may have been posted. */
	struct ibv_send_wr *before;
};

enum aqdv_walk_flags {
	/*
	 * A switch may carry the walk on where it would end with
	 * AQDV_WALK_ELSEWHERE, and its answer come late: it waits for all
	 * requests before it, and those behind it wait for its end. Not for
	 * walks that store, which a node leaves to the client.
	 */
	AQDV_WALK_FORWARD = 1u << 0,
};

/*
 * Post a list to a connected queue pair, as ibv_post_send does; -EINVAL also
 * for a list that is too short or too long. A walk always goes to the peer as a
 * packet, also where the peer's memory is mapped here (AQDV_CAP_DIRECT); there
 * a program may rather read with aqdv_read_now and walk by itself. A peer whose
 * NIC has no walker, or whose queue pair keeps no pads, refuses the request
 * (IBV_WC_REM_INV_REQ_ERR), as adapters do that do not know walks.
 */
int aqdv_post_walk(struct ibv_qp *qp, struct aqdv_walk_wr *wr,
		   struct aqdv_walk_wr **bad_wr);

/*
 * The peer of this queue pair may send walks with pads up to that size, at most
 * 4032 bytes; 0, as at first: it may not. Call it before RTR, which makes room
 * for as many pads as max_dest_rd_atomic says. RESET does not forget it.
 * -EINVAL: another type or state, or too large.
 */
#define AQDV_WALK_PAD_MAX 4032u

int aqdv_qp_set_walk_pad(struct ibv_qp *qp, uint32_t pad_bytes);

/*
 * This UD queue pair executes walks that the switch with the address `from`
 * carries on from other nodes, up to `count` (1 to 1024) at a time; it drops
 * what comes from elsewhere. They read, with keys of its protection domain
 * whose place has a space. Only who knows its queue key can send them. Call it
 * once, in RESET or INIT. -EINVAL: another type or state, or a bad count.
 */
int aqdv_qp_set_hops(struct ibv_qp *qp, uint32_t count,
		     const union ibv_gid *from);

/*
 * Which part of a region a memory region holds. Stripes of 2^shift bytes belong
 * to `count` pieces in turn, this one is number `index`. Offsets of walks are
 * those of the whole region. Without a place, and where `count` is 1, they are
 * offsets from the memory region's first byte, whatever its address. Windows
 * that are bound to the memory region afterwards have its place, without the
 * space. -EBUSY: windows are bound, and more than the space changes. -EINVAL:
 * index, count (1 to 65536) or shift (6 to 62) do not make sense.
 */
struct aqdv_place {
	/* The caller's name for the whole region, by which a switch knows it;
	 * 0: none, and no switch carries walks there. */
	uint32_t space;
	uint32_t index;
	uint32_t count;
	uint32_t shift; /* 0 if count is 1 */
};

int aqdv_set_place(struct ibv_mr *mr, const struct aqdv_place *place);

/* A walk that a peer asked for. All members but `job`, `answer_bytes` and the
 * bytes of the pad are for reading. */
struct aqdv_walk {
	struct ibv_qp *qp; /* on which it came; its pd says whose it is */
	uint64_t at;
	uint64_t program;
	uint32_t iterations; /* that the peer wants */
	uint32_t send_bytes; /* of the pad that the request brought */
	/* What the answer brings of the pad: what the peer has room for, or
	 * less if the walker says so. */
	uint32_t answer_bytes;
	/* Bytes at `pad`. From send_bytes to answer_bytes they are 0; what is
	 * behind has any value. */
	uint32_t pad_room;
	uint8_t *pad; /* aligned to 64 bytes */
	void *job;    /* the walker's; NULL at first */
};

/*
 * Who executes walks. All members are called with the NIC's lock held, by
 * whatever thread works for the NIC, and must not block nor call verbs or aqdv
 * functions except aqdv_walk_reach, aqdv_walk_span and aqdv_walk_done.
 */
struct aqdv_walker {
	void *ctx;
	/* 0: it has begun, or is done already. -EAGAIN: there is no room now;
	 * the NIC asks again after a turn, one protection domain after the
	 * other. Anything else ends it with AQDV_WALK_NO_PROGRAM. */
	int (*start)(void *ctx, struct aqdv_walk *walk);
	/* Makes at most that many iterations; the NIC looks at frames after
	 * it. Called as long as walks are under way. True: some can go on. */
	bool (*turn)(void *ctx, uint32_t iterations);
	/* A walk that has begun and is not done has nobody to answer to any
	 * more; it is not touched after this call. */
	void (*forget)(void *ctx, struct aqdv_walk *walk);
};

/* Copies *walker; NULL: there is none any more. -EBUSY: walks are under way. */
int aqdv_set_walker(struct ibv_context *context,
		    const struct aqdv_walker *walker);

enum aqdv_walk_where {
	AQDV_WALK_HERE,
	AQDV_WALK_IS_ELSEWHERE, /* end the walk with AQDV_WALK_ELSEWHERE */
	AQDV_WALK_IS_FAULT,	/* ... AQDV_WALK_FAULT */
	AQDV_WALK_IS_NO_RIGHT,	/* ... AQDV_WALK_NO_RIGHT */
};

/*
 * Where `len_bytes` from offset `at` are, which one iteration of this walk is
 * about to read, or also to write. The address is valid until the walker
 * returns to the NIC: the key may be revoked afterwards. The memory itself may
 * be unmapped, or be a page for which there is no memory. IS_NO_RIGHT also says
 * that the key is not valid any more; who ends the walk for that reason before
 * its first iteration has the peer's connection end, as a READ with such a key
 * does. Later the peer is told how far it got.
 */
enum aqdv_walk_where aqdv_walk_reach(struct aqdv_walk *walk, uint64_t at,
				     uint32_t len_bytes, bool write,
				     uint8_t **host);

/* Memory of a region: `len` bytes from offset `from` on are at `host`. */
struct aqdv_walk_span {
	uint64_t from, len;
	uint8_t *host;
};

/*
 * The same, with what else lies around there: all that this walk may access
 * without asking again, as long as the address is valid. It may be no more than
 * was asked for.
 */
enum aqdv_walk_where aqdv_walk_span(struct aqdv_walk *walk, uint64_t at,
				    uint32_t len_bytes, bool write,
				    struct aqdv_walk_span *span);

/*
 * A number that changes before an address or span that a walker got here stops
 * being valid: a walker that sees the same number in a later call may use them
 * again instead of asking. It is read in a walker's calls only. NULL: the
 * context is of another NIC.
 */
const uint32_t *aqdv_walk_epoch(struct ibv_context *context);

/* The walk has ended and is the NIC's again; `left` and `took` as in struct
 * aqdv_walk_result. */
void aqdv_walk_done(struct aqdv_walk *walk, enum aqdv_walk_status status,
		    uint64_t at, uint32_t left, uint32_t took);

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
