/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NIC: RoCEv2 reliable connections and datagrams, sans I/O. Frames, time
 * and posted work go in; frames and completions come out through struct env.
 *
 * Threads: a NIC and all its objects belong to the thread that holds its host's
 * lock (nic_host.h); no function here blocks or takes a lock. The exceptions
 * say so. Errors: 0 or -errno. Verbs' constants and work request structures are
 * used as they are, because verbs is the API of everything above.
 */
#ifndef AQ_NIC_H
#define AQ_NIC_H

#include <infiniband/verbs.h>

#include "base/base.h"
#include "base/env.h"

struct nic;
struct nic_pd;
struct nic_mr;
struct nic_mw;
struct nic_dm;
struct nic_cq;
struct nic_srq;
struct nic_qp;
struct nic_ah;

/* ---- counters: one per reason ------------------------------------------- */

#define NIC_COUNTERS(X)                                                 \
	X(rx_frames, "frames received")                                 \
	X(rx_bytes, "bytes received")                                   \
	X(tx_frames, "frames sent")                                     \
	X(tx_bytes, "bytes sent")                                       \
	X(direct_ops, "operations done on the direct port")             \
	X(direct_faults, "direct operations that met revoked memory")   \
	X(reach_ops, "operations done in the memory of a peer")         \
	X(reach_bytes, "bytes that they copied")                        \
	X(acks_sent, "acknowledgements sent")                           \
	X(acks_coalesced, "requests acknowledged by a later packet")    \
	X(naks_sent, "negative acknowledgements sent")                  \
	X(rnr_naks_sent, "receiver-not-ready sent")                     \
	X(naks_received, "negative acknowledgements received")          \
	X(rnr_naks_received, "receiver-not-ready received")             \
	X(retries, "go-back-N restarts")                                \
	X(timeouts, "acknowledgement timers that expired")              \
	X(fast_timeouts, "packets sent again after a few round trips")  \
	X(marks_received, "packets marked by the network (ECN)")        \
	X(marks_returned, "marks told to the sender (BECN)")            \
	X(window_cuts, "windows reduced because of marks")              \
	X(retry_exceeded, "queue pairs that gave up")                   \
	X(probes, "idle peers asked for a sign of life")                \
	X(duplicates, "duplicate requests")                             \
	X(duplicate_reads, "duplicate READs answered again")            \
	X(duplicate_atomics, "duplicate atomics answered from memory")  \
	X(tx_stalls, "transmissions delayed by a full path")            \
	X(completions, "completions produced")                          \
	X(served, "requests of peers executed")                         \
	X(cq_overflows, "completions lost to a full queue")             \
	X(drop_short, "dropped: truncated frame")                       \
	X(drop_not_roce, "dropped: not a RoCEv2 frame")                 \
	X(drop_ip, "dropped: bad IP header")                            \
	X(drop_length, "dropped: lengths disagree")                     \
	X(drop_icrc, "dropped: bad ICRC")                               \
	X(drop_version, "dropped: transport version")                   \
	X(drop_opcode, "dropped: unknown opcode")                       \
	X(drop_payload, "dropped: payload where none belongs")          \
	X(drop_dst_ip, "dropped: not our address")                      \
	X(drop_qpn, "dropped: no such queue pair")                      \
	X(drop_qp_state, "dropped: queue pair not ready")               \
	X(drop_transport, "dropped: opcode of another transport")       \
	X(drop_peer, "dropped: not from the connected peer")            \
	X(drop_path, "dropped: not by the way the peer has to us")      \
	X(drop_auth, "dropped: no MAC, a wrong one, or an old one")     \
	X(drop_pkey, "dropped: partition key")                          \
	X(drop_qkey, "dropped: queue key")                              \
	X(drop_psn, "dropped: packet number out of sequence")           \
	X(drop_duplicate, "dropped: duplicate that cannot be answered") \
	X(drop_response, "dropped: response to nothing")                \
	X(drop_blocked, "dropped: source blocked after failures")       \
	X(drop_no_recv, "dropped: datagram without a receive")          \
	X(drop_ud_length, "dropped: datagram larger than its receive")  \
	X(drop_multi, "dropped: response out of order")                 \
	X(deny_key, "refused: no such key")                             \
	X(deny_pd, "refused: key of another domain")                    \
	X(deny_access, "refused: right not granted")                    \
	X(deny_bounds, "refused: outside the region")                   \
	X(deny_unmapped, "refused: memory unmapped under its key")      \
	X(deny_qp_access, "refused: queue pair does not allow it")      \
	X(deny_align, "refused: misaligned atomic")                     \
	X(deny_resources, "refused: more reads than agreed")            \
	X(deny_sequence, "refused: opcode out of sequence")             \
	X(deny_length, "refused: wrong length")                         \
	X(local_protection, "work requests with a bad local key")       \
	X(keys_guessed, "of the refused keys, those never given out")   \
	X(sources_blocked, "times a source was blocked")                \
	X(acks_held, "acknowledgements that waited for others")         \
	X(chain_steps, "requests executed from managed queues")         \
	X(chain_loops, "of them, those served without a packet")        \
	X(chain_waits, "times a chain had to wait for a completion")    \
	X(chain_faults, "chains ended: bad request or no right")        \
	X(chain_runaways, "chains ended: nobody paid for more steps")   \
	X(walks, "walks executed for peers")                            \
	X(walk_iterations, "iterations that they made")                 \
	X(walk_faults, "walks that met a pointer to nowhere")           \
	X(walk_elsewhere, "walks that go on at another node")           \
	X(walk_waits, "walks that had to wait for others to end")       \
	X(duplicate_walks, "duplicate walks answered from memory")      \
	X(hops, "of the walks, those that a switch carried on to us")   \
	X(hops_refused, "such walks sent back: no valid key")           \
	X(drop_hop, "dropped: walk that is not a switch's to carry on") \
	X(drop_hop_full, "dropped: walk carried on, and no room for it")

enum nic_counter {
#define NIC_COUNTER_ENUM(name, help) NIC_C_##name,
	NIC_COUNTERS(NIC_COUNTER_ENUM)
#undef NIC_COUNTER_ENUM
	NIC_COUNTER_COUNT
};

extern const char *const nic_counter_names[NIC_COUNTER_COUNT];
extern const char *const nic_counter_help[NIC_COUNTER_COUNT];

/* ---- the device --------------------------------------------------------- */

enum {
	NIC_GID_MAX = 4,
	NIC_QPN_INDEX_BITS = 14, /* the low bits of a QPN; above: host slot */
	NIC_SLOT_COUNT = 1 << (24 - NIC_QPN_INDEX_BITS),
	NIC_GSI_INDEX = 1,    /* of the management queue pair in every slot */
	NIC_KEY_FAILURES = 8, /* then the source is blocked */
	NIC_AUTH_KEY_BYTES = 32,
};

#define NIC_BLOCK_NS 1000000000ull /* for this long */

/* A request of a managed queue that is about to be executed. */
struct nic_chain_step {
	uint32_t qpn;
	uint8_t opcode; /* enum aqdv_wqe_opcode */
	bool is_near;	/* its other end is on this NIC */
	uint32_t pieces;
	uint32_t bytes;
	uint64_t addr; /* remote */
};

/* Decides when requests of managed queues are executed. False: not now; the
 * clock then calls nic_chain_resume and nic_flush when the request is due.
 * Called with the host's lock held; must not call back into the NIC. */
struct nic_chain_clock {
	bool (*may_go)(void *ctx, const struct nic_chain_step *step);
	void *ctx;
};

/* What a responder did, reported where it happens, whatever it answers. */
enum nic_deed_kind {
	NIC_DEED_EXECUTED, /* a packet of a request; a READ: is accepted */
	NIC_DEED_READ,	   /* memory was read for this packet of an answer */
	NIC_DEED_REFUSED,  /* the queue pair ends because of this packet */
};

struct nic_deed {
	enum nic_deed_kind kind;
	uint32_t qpn; /* the responder's */
	uint32_t psn;
	uint32_t packets; /* packet numbers from psn on */
	uint8_t syndrome; /* of a refusal, as on the wire */
};

/* Sees the deeds of all responders of a NIC. Called with the host's lock held;
 * must not call back into the NIC. */
struct nic_witness {
	void (*saw)(void *ctx, const struct nic_deed *deed);
	void *ctx;
};

/*
 * Where a frame came from, as far as the env vouches for it. All NICs of a host
 * share its addresses, and on some ports any sender can write any address into
 * a frame, so the NIC trusts this value instead. It is the slot of a NIC of
 * this host (our own for frames to ourselves), or one of these.
 */
enum nic_from {
	NIC_FROM_UNKNOWN = 0,	       /* a NIC of this host, not known which */
	NIC_FROM_NET = NIC_SLOT_COUNT, /* any host of the network */
	NIC_FROM_NOBODY,	       /* the path leads nowhere */
	NIC_FROM_MASK = 2 * NIC_SLOT_COUNT - 1,
	/* A bit beside a slot: that NIC receives for the whole host, as we do,
	 * and may pass on frames that came from the network for us. */
	NIC_FROM_FORWARDS = 2 * NIC_SLOT_COUNT,
};

struct nic_config {
	uint32_t slot; /* which of the host's NICs; the top of every QPN */
	/* The other NICs with our addresses are reached by cable: a frame from
	 * a network with such a source address is forged. */
	bool own_is_near;
	unsigned gid_count;
	struct env_addr gids[NIC_GID_MAX]; /* same MAC in all */
	uint64_t node_guid;
	uint32_t mtu; /* largest payload of a packet: 256 to 4096; 0: 4096 */
	uint64_t *counters; /* NIC_COUNTER_COUNT words; NULL: own memory */
	/* Requests of a managed queue until others have their turn; 0: many. If
	 * it is set, each nic_flush gives one turn only, so that the caller can
	 * stop between any two requests. */
	uint32_t chain_turn;
	const struct nic_chain_clock *chain_clock; /* NULL: at once */
	const struct nic_witness *witness;	   /* NULL: none */
};

/* Called with the host's lock held; must not call back into the NIC. */
struct nic_upcalls {
	void (*cq_event)(struct nic_cq *cq, void *owner);
	/* `owner` is that of the QP, CQ or SRQ that the event is about; the
	 * event's type says which. */
	void (*async_event)(void *owner, enum ibv_event_type type);
};

int nic_create(struct env *env, const struct nic_config *cfg,
	       struct nic **out) MUST_CHECK;
/* Every object must have been destroyed. */
void nic_destroy(struct nic *nic);
void nic_set_upcalls(struct nic *nic, const struct nic_upcalls *up);
const struct nic_config *nic_get_config(const struct nic *nic);
uint64_t nic_counter_get(const struct nic *nic, enum nic_counter c);

void nic_query_device(const struct nic *nic, struct ibv_device_attr *attr);
void nic_query_port(const struct nic *nic, struct ibv_port_attr *attr);

/* ---- frames and time ---------------------------------------------------- */

/* One received frame, and where it came from: enum nic_from. The buffer is the
 * caller's again after the call. */
void nic_input(struct nic *nic, const uint8_t *frame, size_t len_bytes,
	       uint32_t from);

/* A number for the domain whose packets have come since this was called last,
 * of the last one; 0: none was taken. Two that are there have different ones.
 * And whether it did more lately than another one that is there. */
uint64_t nic_take_domain(struct nic *nic, bool *is_greedy);

/* Prefetches what a frame that will probably come soon will read. It has no
 * other effect, whatever the bytes are. */
void nic_foretell(const struct nic *nic, const uint8_t *frame,
		  size_t len_bytes);

/* The same, but nothing happens and false is returned when the ICRC is wrong:
 * a port that had to guess the IPv4 identification can try another. */
bool nic_input_if_intact(struct nic *nic, const uint8_t *frame,
			 size_t len_bytes, uint32_t from) MUST_CHECK;

/* The interface carries less than the NIC was made for; the NIC reports the
 * smaller MTU from now on. A smaller MTU of one peer's path is no reason to
 * call this; see nic_path_mtu. */
void nic_lower_mtu(struct nic *nic, uint32_t mtu);
/* The largest path MTU whose packets reach an address in one piece. */
enum ibv_mtu nic_path_mtu(struct nic *nic, const uint8_t ip[16]);

/* After a batch of input, or when a full path has room again: sends the
 * acknowledgements that are due and continues with what had to wait. Returns
 * true while there is more to send than the paths take. */
bool nic_flush(struct nic *nic);
/*
 * Whether acknowledgements may wait that no peer waits for: those of messages
 * with an immediate value, which are answers, and of messages that start a
 * chain, whose answer acknowledges more. A caller that allows it must keep
 * flushing, and call nic_release_acks before it stops. nic_held_acks: the most
 * messages that one held acknowledgement covers; 0: none is held. Any thread
 * may call it.
 */
void nic_hold_acks(struct nic *nic, bool on);
uint32_t nic_held_acks(const struct nic *nic);
/* Hands the held acknowledgements to the env; does not flush. */
void nic_release_acks(struct nic *nic);
/* Whether something waits to be sent or walked, also since the last flush, such
 * as a post that met a full path. nic_flush is then due without any input. */
bool nic_has_ready(const struct nic *nic);
/* Whether a chain whose turn was over can go on at once, without input and
 * without room on a path. Its thread must then not sleep. */
bool nic_has_chains(const struct nic *nic);
/* Whether walks are under way, so that a turn of the walker is due. */
bool nic_has_walks(const struct nic *nic);
/* The request at which the clock paused the queue is due; nic_flush executes
 * it. Without such a queue pair nothing happens. */
void nic_chain_resume(struct nic *nic, uint32_t qpn);

/* Runs timers. The env calls it no later than nic_next_deadline_ns says. */
void nic_tick(struct nic *nic);
uint64_t nic_next_deadline_ns(const struct nic *nic); /* UINT64_MAX: none */

/* The peer behind this path is gone for good. Connections with a retry timer
 * fail when it has run out, those without one fail now. */
void nic_path_down(struct nic *nic, struct env_path *path);

/* Work requests posted and not completed; may be read without the lock. */
uint32_t nic_outstanding(const struct nic *nic);

/* ---- protection domains, memory ----------------------------------------- */

int nic_pd_create(struct nic *nic, struct nic_pd **out) MUST_CHECK;
int nic_pd_destroy(struct nic_pd *pd) MUST_CHECK; /* -EBUSY while used */
/* Its queue pairs have their turns among those of `with`, which must stay as
 * long. -EINVAL: it is in use already, or of another NIC. */
int nic_pd_share_turns(struct nic_pd *pd, struct nic_pd *with) MUST_CHECK;

struct nic_mr_attr {
	void *addr;
	uint64_t length;
	uint64_t iova;
	int access;	 /* enum ibv_access_flags */
	bool is_watched; /* nic_memory_gone will be called for it */
};

int nic_mr_reg(struct nic_pd *pd, const struct nic_mr_attr *attr,
	       struct nic_mr **out) MUST_CHECK;
/* `flags` as in ibv_rereg_mr. On failure the old registration stands. */
int nic_mr_rereg(struct nic_mr *mr, int flags, struct nic_pd *pd,
		 const struct nic_mr_attr *attr) MUST_CHECK;
int nic_mr_dereg(struct nic_mr *mr) MUST_CHECK; /* -EBUSY: windows bound */
/* The program has unmapped this range. Existing keys are refused there from now
 * on, whatever is mapped there next; keys that are made later are not. */
void nic_memory_gone(struct nic *nic, const void *addr, size_t len_bytes);
uint32_t nic_mr_key(const struct nic_mr *mr); /* lkey and rkey */

/* Which part of a striped region this is; see aqdv_set_place. -EBUSY: windows
 * are bound to it. */
struct nic_place {
	uint32_t space;
	uint32_t index;
	uint32_t count; /* 0 is as 1: the whole region */
	uint32_t shift;
};

int nic_mr_set_place(struct nic_mr *mr,
		     const struct nic_place *place) MUST_CHECK;

/* What a direct mapping needs to know of a key, if connection `qpn` from
 * `peer_qpn` may use it. -EACCES: it may not. Wrong keys count as they do at a
 * responder; -EAGAIN: the peer is blocked because of them. */
int nic_direct_grant(struct nic *nic, uint32_t qpn, uint32_t peer_qpn,
		     uint32_t rkey, struct nic_mr_attr *attr) MUST_CHECK;

enum {
	NIC_READ_NOW_MAX = 32,
};

struct nic_read {
	uint64_t addr;
	void *to;
	uint32_t rkey;
	uint32_t len_bytes;
};
/* Executes READs of memory that is mapped here, without the send queue. Returns
 * how many were done, from the first on; at most NIC_READ_NOW_MAX. */
unsigned nic_qp_read_now(struct nic_qp *qp, const struct nic_read *reads,
			 unsigned count);

int nic_dm_alloc(struct nic *nic, uint64_t length, uint32_t log_align,
		 struct nic_dm **out) MUST_CHECK;
int nic_dm_free(struct nic_dm *dm) MUST_CHECK;
int nic_dm_write(struct nic_dm *dm, uint64_t offset, const void *src,
		 size_t len_bytes) MUST_CHECK;
int nic_dm_read(const struct nic_dm *dm, uint64_t offset, void *dst,
		size_t len_bytes) MUST_CHECK;
int nic_mr_reg_dm(struct nic_pd *pd, struct nic_dm *dm, uint64_t offset,
		  uint64_t length, int access, struct nic_mr **out) MUST_CHECK;
uint64_t nic_dm_size_max(const struct nic *nic);

int nic_mw_alloc(struct nic_pd *pd, enum ibv_mw_type type,
		 struct nic_mw **out) MUST_CHECK;
int nic_mw_dealloc(struct nic_mw *mw) MUST_CHECK;
uint32_t nic_mw_key(const struct nic_mw *mw);

/* ---- walks --------------------------------------------------------------
 */

/* A walk that a peer asked for: struct aqdv_walk, with the owner of the queue
 * pair in place of the queue pair. */
struct nic_walk {
	void *qp_owner;
	uint64_t at;
	uint64_t program;
	uint32_t iterations;
	uint32_t send_bytes;
	uint32_t answer_bytes;
	uint32_t pad_room;
	uint8_t *pad;
	void *job;
};

/* Who executes walks; see struct aqdv_walker. */
struct nic_walker {
	void *ctx;
	int (*start)(void *ctx, struct nic_walk *walk);
	bool (*turn)(void *ctx, uint32_t iterations);
	void (*forget)(void *ctx, struct nic_walk *walk);
};

/* NULL: there is none any more. -EBUSY: walks are under way. */
int nic_set_walker(struct nic *nic, const struct nic_walker *walker) MUST_CHECK;

enum nic_walk_where {
	NIC_WALK_HERE,
	NIC_WALK_ELSEWHERE,
	NIC_WALK_FAULT,
	NIC_WALK_NO_RIGHT,
};

struct nic_walk_span {
	uint64_t from, len;
	uint8_t *host;
};

/* See aqdv_walk_span and so on; `status` as on the wire. */
enum nic_walk_where nic_walk_span(struct nic_walk *walk, uint64_t at,
				  uint32_t len_bytes, bool write,
				  struct nic_walk_span *span);
enum nic_walk_where nic_walk_reach(struct nic_walk *walk, uint64_t at,
				   uint32_t len_bytes, bool write,
				   uint8_t **host);
const uint32_t *nic_walk_epoch(const struct nic *nic);
void nic_walk_done(struct nic_walk *walk, uint8_t status, uint64_t at,
		   uint32_t left, uint32_t took);

/* ---- completion queues -------------------------------------------------- */

/* One completion, as the NIC leaves it. Fields as in struct ibv_wc. */
struct nic_cqe {
	uint64_t wr_id;
	uint64_t timestamp_ns;
	uint32_t qp_num;
	uint32_t src_qp;
	uint32_t byte_len;
	uint32_t imm_or_key; /* as ibv_wc: imm in network order, key in host */
	uint32_t vendor_err;
	uint8_t status; /* enum ibv_wc_status */
	uint8_t opcode; /* enum ibv_wc_opcode */
	uint8_t wc_flags;
	uint8_t sl;
	bool solicited;
	bool is_recv;
	uint8_t reserved[2];
	void *qp_owner; /* NULL: purged, skip */
};

int nic_cq_create(struct nic *nic, uint32_t cqe_count, void *owner,
		  struct nic_cq **out) MUST_CHECK;
int nic_cq_destroy(struct nic_cq *cq) MUST_CHECK; /* -EBUSY while used */
int nic_cq_resize(struct nic_cq *cq, uint32_t cqe_count) MUST_CHECK;
uint32_t nic_cq_size(const struct nic_cq *cq);
/* Off at first: a clock reading per completion. */
void nic_cq_enable_timestamps(struct nic_cq *cq);

/* Asks for an upcall at the next completion, or solicited or failed one. */
void nic_cq_arm(struct nic_cq *cq, bool solicited_only);

/*
 * The consumer's side needs no host lock, only that one thread at a time polls
 * this CQ. peek returns the oldest completion or NULL; pop makes room.
 */
const struct nic_cqe *nic_cq_peek(struct nic_cq *cq);
void nic_cq_pop(struct nic_cq *cq);
/* Reads without any lock, so the answer may be out of date already. */
bool nic_cq_is_empty(const struct nic_cq *cq);

/*
 * From now on successes are counted and not shown, so that chains can wait for
 * them; -EBUSY: it has users. nic_cq_number is its number in WAIT; 0: it does
 * not count.
 */
int nic_cq_make_counting(struct nic_cq *cq) MUST_CHECK;
uint32_t nic_cq_number(const struct nic_cq *cq);
uint32_t nic_cq_counted(const struct nic_cq *cq);

/* ---- shared receive queues ---------------------------------------------- */

int nic_srq_create(struct nic_pd *pd, const struct ibv_srq_attr *attr,
		   void *owner, struct nic_srq **out) MUST_CHECK;
int nic_srq_destroy(struct nic_srq *srq) MUST_CHECK;
int nic_srq_modify(struct nic_srq *srq, const struct ibv_srq_attr *attr,
		   int mask) MUST_CHECK;
void nic_srq_query(const struct nic_srq *srq, struct ibv_srq_attr *attr);
uint32_t nic_srq_number(const struct nic_srq *srq);
int nic_srq_post(struct nic_srq *srq, const struct ibv_recv_wr *wr)
	MUST_CHECK; /* one request; wr->next is not followed */

/* ---- queue pairs -------------------------------------------------------- */

enum nic_chain_flags {
	NIC_CHAIN_ORDERED = 1u << 0, /* one request after the other */
	NIC_CHAIN_CYCLIC = 1u << 1,  /* always enabled */
};

/* Queues that the NIC reads from memory; see aqdv.h. */
struct nic_chain_attr {
	uint32_t flags;
	uint64_t sq_addr;
	uint32_t sq_lkey;
	uint32_t sq_blocks; /* 0: an ordinary send queue */
	uint64_t rq_addr;
	uint32_t rq_lkey;
	uint32_t rq_entries; /* 0: an ordinary receive queue */
	uint32_t rq_segs;
	uint32_t rq_dbr_lkey;
	uint64_t rq_dbr_addr; /* 0: none */
	uint32_t max_steps;
};

struct nic_qp_attr {
	enum ibv_qp_type type; /* IBV_QPT_RC or IBV_QPT_UD */
	struct nic_cq *send_cq;
	struct nic_cq *recv_cq;
	struct nic_srq *srq;   /* or NULL */
	struct ibv_qp_cap cap; /* in: wanted; out: what was made */
	bool sq_sig_all;
	/* The general services queue pair: UD, one per NIC, numbered
	 * NIC_GSI_INDEX in its slot. What is sent to the plain number 1 reaches
	 * it too. */
	bool is_gsi;
	const struct nic_chain_attr *chain; /* or NULL */
	void *owner;
};

/* Resetting or destroying a queue pair takes its completions out of their
 * queues: the caller keeps pollers of both CQs away meanwhile. */
int nic_qp_create(struct nic_pd *pd, struct nic_qp_attr *attr,
		  struct nic_qp **out) MUST_CHECK;
void nic_qp_destroy(struct nic_qp *qp);
int nic_qp_modify(struct nic_qp *qp, const struct ibv_qp_attr *attr,
		  int mask) MUST_CHECK;
void nic_qp_query(const struct nic_qp *qp, struct ibv_qp_attr *attr);
uint32_t nic_qp_number(const struct nic_qp *qp);
enum ibv_qp_state nic_qp_state(const struct nic_qp *qp);
/* Whether nic_path_down was called for its path and it has no retry timer. */
bool nic_qp_peer_gone(const struct nic_qp *qp);
/*
 * Asks the peer of an idle connection for a sign of life. 1: the peer has given
 * none since the last call, or a request failed because it gave none; 0: it
 * has, or could not be asked. -EINVAL: not the number of a connection.
 */
int nic_qp_probe(struct nic *nic, uint32_t qpn) MUST_CHECK;
/* See aqdv_qp_set_walk_pad. */
int nic_qp_set_walk_pad(struct nic_qp *qp, uint32_t pad_bytes) MUST_CHECK;
/* See aqdv_qp_set_hops. */
int nic_qp_set_hops(struct nic_qp *qp, uint32_t count,
		    const uint8_t from_ip[16]) MUST_CHECK;
/* See aqdv_qp_set_auth. */
int nic_qp_set_auth(struct nic_qp *qp, const uint8_t *key,
		    size_t len_bytes) MUST_CHECK;

/* Masked atomics have no place in ibv_send_wr; aqdv hands them over here.
 * NULL for every ordinary request. */
struct nic_masked_atomic {
	bool is_add;
	uint64_t remote_addr;
	uint32_t rkey;
	uint64_t swap_add;
	uint64_t compare;
	uint64_t swap_mask;
	uint64_t compare_mask;
	uint64_t boundary;
};

/* The beginning of a walk's list, behind which the pad is; written when it
 * completes. See struct aqdv_walk_result. */
struct nic_walk_result {
	uint64_t at;
	uint64_t program;
	uint32_t space;
	uint32_t left;
	uint32_t took;
	uint16_t pad_bytes;
	uint8_t status;
	uint8_t hops;
};

/* And walks. */
struct nic_walk_request {
	uint64_t at;
	uint64_t program;
	uint32_t rkey;
	uint32_t iterations;
	uint32_t send_bytes;
	bool forward;
};

/* One request; wr->next is not followed. wr->wr.ud.ah and the windows in
 * wr->bind_mw are the caller's to translate: pass them in `ah` and `mw`. */
struct nic_send_extra {
	struct nic_ah *ah;
	struct nic_mw *mw;
	struct nic_mr *bind_mr;
	const struct nic_masked_atomic *masked;
	const struct nic_walk_request *walk;
};

/* Prefetches for a post to this queue pair that is about to take the lock;
 * needs no lock itself. */
void nic_qp_prefetch(const struct nic_qp *qp);
/* Queues one request. -EINVAL, -ENOMEM (queue full). nic_qp_kick sends. */
int nic_qp_post_send(struct nic_qp *qp, const struct ibv_send_wr *wr,
		     const struct nic_send_extra *extra) MUST_CHECK;
/* After one or several posts: starts to transmit them. */
void nic_qp_kick(struct nic_qp *qp);
/* Takes back the newest `count` posts, none of which was kicked yet. */
void nic_qp_unpost(struct nic_qp *qp, uint32_t count);
int nic_qp_post_recv(struct nic_qp *qp,
		     const struct ibv_recv_wr *wr) MUST_CHECK;

/* How many blocks, or receives, of a managed queue may be executed since it
 * was made. nic_qp_kick and nic_flush start it. */
int nic_qp_enable_send(struct nic_qp *qp, uint32_t index) MUST_CHECK;
int nic_qp_enable_recv(struct nic_qp *qp, uint32_t index) MUST_CHECK;

int nic_ah_create(struct nic_pd *pd, const struct ibv_ah_attr *attr,
		  struct nic_ah **out) MUST_CHECK;
void nic_ah_destroy(struct nic_ah *ah);

#endif
