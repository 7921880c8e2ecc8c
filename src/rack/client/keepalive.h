/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For rooms that keep something alive in a rack beside this room's own
 * connections: the rack's device, its nodes and engines, heartbeats, and
 * periodic calls on a thread of the rack.
 */
#ifndef AQ_CLIENT_KEEPALIVE_H
#define AQ_CLIENT_KEEPALIVE_H

#include <aquifer/aqdv.h>
#include <stdatomic.h>

#include "base/list.h"
#include "client.h"
#include "verbs_api.h"

struct aq_rack;
struct aq_region;

/* A connection to a node, or a session of an engine, as the other end knows it:
 * what the heartbeat keeps alive. Embedded by its user. */
struct client_bond {
	struct list link; /* under the rack's lock */
	/* Index of the node in the rack; from CLIENT_NODE_MAX on, of one of
	 * the rack's engines. */
	uint32_t node;
	uint32_t cycle; /* of the last heartbeat; under the rack's lock */
	/* Set by the heartbeat: the node or engine does not know the bond any
	 * more, or an engine did not answer. L2 stores it, L3 loads; no data
	 * hangs on it. */
	atomic_bool is_lost;
	/* Set by its user: what it keeps alive is another process's work, and
	 * goes on while this engine is silent; that is only noted. */
	bool is_patient;
	atomic_bool is_silent;	/* as is_lost */
	char id[CLIENT_ID_MAX]; /* "": not connected */
};

void client_bond_init(struct client_bond *bond, uint32_t node);
/* From here on every heartbeat to the node names this bond. */
int client_bond_add(struct aq_rack *rack, struct client_bond *bond,
		    uint32_t heartbeat_ms) MUST_CHECK;
/* The same for a session of that engine. */
int client_bond_add_engine(struct aq_rack *rack, struct client_bond *bond,
			   const struct client_node *engine, const char *token,
			   uint32_t heartbeat_ms) MUST_CHECK;
/* Does nothing for a bond that was not added. */
void client_bond_remove(struct aq_rack *rack, struct client_bond *bond);

static inline bool client_bond_is_lost(const struct client_bond *bond)
{
	/* L3, pairs with L2. */
	return atomic_load_explicit(&bond->is_lost, memory_order_relaxed);
}

static inline bool client_bond_is_silent(const struct client_bond *bond)
{
	/* L3, pairs with L2. */
	return atomic_load_explicit(&bond->is_silent, memory_order_relaxed);
}

/* ---- auth.c: connections whose packets carry a MAC ----------------------- */

struct client_auth {
	bool is_set;
	uint8_t key[AQDV_AUTH_KEY_BYTES];
};

/* Says in a request to connect that this side supports it. */
void client_auth_offer(const struct client_verbs *v, json_t *body);
/* The key that the answer of `who` has, if any. -EPROTO: it has none, and our
 * own nic.auth asks for one. */
int client_auth_parse(const struct aq_rack *rack, const json_t *reply,
		      const char *who, struct client_auth *out) MUST_CHECK;
/* Sets the key in the queue pair before the first packet, then forgets it. */
int client_auth_use(const struct client_verbs *v, struct ibv_qp *qp,
		    struct client_auth *auth) MUST_CHECK;

/* ---- keepalives ---------------------------------------------------------- */

/* Embedded; its tick is called every CLIENT_KEEP_MS or so, on a thread that the
 * keepalives of a rack share, and may talk to nodes with the given caller. A
 * tick that waits delays other keepalives, but no heartbeat. */
struct client_keepalive {
	struct list link; /* under the rack's lock */
	void (*tick)(struct client_keepalive *k,
		     const struct client_caller *caller);
};

int client_keep_add(struct aq_rack *rack,
		    struct client_keepalive *k) MUST_CHECK;
/* Its tick neither runs nor will run when this returns. */
void client_keep_remove(struct aq_rack *rack, struct client_keepalive *k);

/* This thread's caller; valid until the thread ends. */
int client_keep_caller(struct aq_rack *rack,
		       const struct client_caller **out) MUST_CHECK;

struct client_device {
	const struct client_verbs *verbs;
	struct ibv_context *context;
	struct ibv_pd *pd;
};

/* The rack's NIC, opened if it was not; the rack closes it. */
int client_keep_device(struct aq_rack *rack,
		       struct client_device *out) MUST_CHECK;

uint64_t client_keep_now_ns(const struct aq_rack *rack);
/* Node `index` of a region's map. */
const struct client_node *client_keep_node(const struct aq_rack *rack,
					   uint32_t index);
/* The engines of the rack, in the order of their names; how many. */
unsigned client_keep_engines(const struct aq_rack *rack,
			     struct client_node engines[CLIENT_NODE_MAX]);
/* The token for engines, "" when there is none. */
void client_keep_engine_token(const struct aq_rack *rack,
			      char token[CLIENT_TOKEN_MAX]);

/* A region as it was when last heard of. */
struct client_shape {
	struct aq_rack *rack;
	char name[CLIENT_REGION_NAME_MAX];
	bool is_read_only;
	bool is_revocable; /* keys must be windows */
	struct client_map map;
};

int client_keep_shape(struct aq_region *region,
		      struct client_shape *out) MUST_CHECK;
/* Another number after each change of the shape, and for each handle. */
uint64_t client_keep_version(const struct aq_region *region);
/* Whether a switch of the rack's configuration runs that program. */
bool client_keep_has_program(const struct aq_rack *rack, const char *program);
/* Asks the nodes what became of it, by a deadline as in client_link_options.
 * -ESTALE: it is gone. */
int client_keep_refresh(struct aq_region *region,
			uint64_t deadline_ns) MUST_CHECK;

#endif
