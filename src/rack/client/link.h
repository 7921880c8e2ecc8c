/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread's own queue pair to one memory node, with a key to one piece of a
 * region, for rooms that post their own work requests.
 *
 * In a real rack client_link_open() makes it. In the simulator lab/rig fills in
 * the same struct from simulated devices; users of a link must not see the
 * difference, so every loop that waits calls clock->relax.
 */
#ifndef AQ_CLIENT_LINK_H
#define AQ_CLIENT_LINK_H

#include <infiniband/verbs.h>
#include <jansson.h>

#include "base/base.h"
#include "client_limits.h"
#include "reach.h"

struct aq_rack;
struct client_verbs;

struct client_clock {
	uint64_t (*now_ns)(void *ctx);
	void (*relax)(void *ctx);
	void *ctx;
	/* After a poll of completions that found nothing. NULL: as relax. */
	void (*polled)(void *ctx);
};

static inline uint64_t client_clock_now_ns(const struct client_clock *c)
{
	return c->now_ns(c->ctx);
}

static inline void client_clock_relax(const struct client_clock *c)
{
	c->relax(c->ctx);
}

static inline void client_clock_polled(const struct client_clock *c)
{
	if (c->polled)
		c->polled(c->ctx);
	else
		c->relax(c->ctx);
}

/* The owner may read all of it; one thread at a time posts and polls. */
struct client_link {
	const struct client_verbs *verbs; /* named calls: verbs_api.h */
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* of the queue; NULL: none */
	struct ibv_cq *cq;
	struct ibv_qp *qp; /* RC, in RTS */
	uint64_t addr;	   /* of the piece's first byte */
	uint64_t size_bytes;
	uint32_t rkey;
	uint32_t node;	/* index in the rack */
	uint32_t epoch; /* of the piece: another one means a dead key */
	/* This NIC and the node's both have them. */
	bool has_masked_atomics;
	const struct client_clock *clock;
	/* Address of the node's NIC; "": it is not reached by UDP, or the link
	 * is simulated. */
	char peer[CLIENT_PEER_MAX];
};

enum client_link_rights {
	CLIENT_LINK_READ,  /* the NIC there refuses all else */
	CLIENT_LINK_WRITE, /* reads and writes */
	CLIENT_LINK_ALL,   /* atomics too; the only one that may be mapped */
};

enum {
	CLIENT_LINK_SEND_DEPTH = 128,
	CLIENT_LINK_SEND_DEPTH_MAX = 16384,
	CLIENT_LINK_RD_ATOMIC = 16,
};

/* Zero-initialise it; unset members have their default. */
struct client_link_options {
	uint32_t send_depth; /* 0: CLIENT_LINK_SEND_DEPTH */
	uint32_t cq_depth;   /* 0: the send depth */
	uint32_t rd_atomic;  /* 0: CLIENT_LINK_RD_ATOMIC */
	uint32_t max_sge;    /* 0: 1 */
	uint32_t max_inline; /* bytes */
	uint32_t recv_depth; /* 0: 1 */
	/* The node may write to memory whose key it is given, or read it. */
	bool accepts_writes;
	bool accepts_reads;
	/* More members of the request to connect, or NULL. */
	json_t *connect_more;
	/* The node keeps this link as long as another one, which has the
	 * heartbeat; so client_link_is_lost is never true for this one. */
	bool has_no_heartbeat;
	enum client_link_rights rights;
	bool is_revocable; /* the key is a window, whatever the rights */
	bool has_channel;  /* by which its owner can sleep */
	/* Another link's, which must outlive this one; NULL: its own. */
	struct ibv_cq *share_cq;
	/* By which all of it is done, by the rack's clock (client_keep_now_ns);
	 * 0: the rack's deadline, from now on. */
	uint64_t deadline_ns;
};

/*
 * Connects to the node that has `name`, a region on one node or one piece of a
 * striped region (piece_name_write). *out belongs to the caller and to the
 * thread that uses it; it must be closed before the rack.
 *
 * When the node dies, requests complete with an error within about 2 s; a
 * region that was resized or deleted refuses its key (IBV_WC_REM_ACCESS_ERR).
 * Either way the queue pair is broken: close the link and open another.
 */
int client_link_open(struct aq_rack *rack, const char *name,
		     const struct client_link_options *options,
		     struct client_link **out) MUST_CHECK;
/* The same where it is known that the node of that index has it. */
int client_link_open_at(struct aq_rack *rack, uint32_t node, const char *name,
			const struct client_link_options *options,
			struct client_link **out) MUST_CHECK;
/* Connects to the node of that index, without a key: addr, size_bytes, rkey and
 * epoch stay 0. */
int client_link_join(struct aq_rack *rack, uint32_t node,
		     const struct client_link_options *options,
		     struct client_link **out) MUST_CHECK;
/* Nodes of the rack now; indices are below that and stay. */
uint32_t client_link_node_count(struct aq_rack *rack);
/* A request to the link's node; `body` is taken over; see client_call(). The
 * deadline as in struct client_link_options. */
int client_link_call(struct client_link *link, const char *method,
		     const char *path, json_t *body, uint64_t deadline_ns,
		     json_t **reply) MUST_CHECK;
/* Requests that are under way are forgotten. NULL is allowed. */
void client_link_close(struct client_link *link);
/* Whether the node has said that it does not know the connection any more, or
 * cannot be reached at all. */
bool client_link_is_lost(const struct client_link *link);

/* What a completion's status means: 0, -ESTALE (the key is dead), -EHOSTDOWN
 * (no answer), -EREMOTEIO, -ECANCELED (another request of the connection failed
 * before), -EIO. */
int client_wc_errno(enum ibv_wc_status status);
/* Whether a completion says that nothing was heard. */
bool client_wc_is_silence(enum ibv_wc_status status);
/* The reason why a request was not answered, as client_reach_why has it: "" or
 * "; " and a sentence. It may take CLIENT_REACH_MS. */
void client_link_why(const struct client_link *link,
		     char words[CLIENT_REACH_WORDS]);

/* The same without a look, for who must not wait: which command would say it,
 * or "" where the node is on this machine. */
void client_link_hint(const struct client_link *link,
		      char words[CLIENT_REACH_WORDS]);

/* Whether a cable leads to the node, by which memory can be mapped. Only for
 * links of a rack. */
bool client_link_may_map(const struct client_link *link);

/* A key to a region of the link's node, on the link's connection. */
struct client_key {
	uint64_t addr; /* of its first byte */
	uint64_t size_bytes;
	uint32_t rkey;
	uint32_t epoch;
};

/*
 * A key with all rights to the first length_bytes of a region; 0: to all of it.
 * A part of a region is a window: it cannot be mapped, so all requests go
 * through the node's NIC, and it ends with the connection.
 */
int client_link_key(struct client_link *link, const char *name,
		    uint64_t length_bytes, struct client_key *out) MUST_CHECK;
/* The node's name of the connection. */
const char *client_link_name(const struct client_link *link);
const char *client_link_node_name(const struct client_link *link);
/* Ends any connection of the same tenant: when it returns 0, the node executes
 * no request of that connection any more. */
int client_link_end(struct aq_rack *rack, uint32_t node,
		    const char *name) MUST_CHECK;
/* Whether the node knows it: 1, 0, or -errno. Waits for the answer for so long
 * at most, and not beyond the rack's deadline. */
int client_link_is_known(struct aq_rack *rack, uint32_t node, const char *name,
			 uint32_t wait_ms);

/* A node that answers. */
struct client_host {
	char node[CLIENT_NODE_NAME_MAX];
	uint64_t free_bytes;
};
/* All of them, in the order of their names: how many, or -errno. */
int client_hosts(struct aq_rack *rack, struct client_host *out, unsigned max);
/* How many nodes that the rack knows of do not answer, and the name of one. */
int client_hosts_silent(struct aq_rack *rack, char name[CLIENT_NODE_NAME_MAX]);

/* The real clock of a rack: monotonic time, sched_yield. */
const struct client_clock *client_clock_real(void);

#endif
