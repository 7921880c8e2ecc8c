/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller's word at a node: which tenants there are, what they may have,
 * and whether the node takes anything new. The thread that talks to the
 * controller (uplink/) says and hears; requests that need more than the node
 * may hand out wait for a grant.
 */
#ifndef AQ_MEM_RULED_H
#define AQ_MEM_RULED_H

#include "mem_priv.h"

/* Whether the tenant may have that much more: -EDQUOT with words. Notes what is
 * missing, for ruled_await. */
int ruled_charge(struct mem_node *node, struct mem_tenant *t,
		 uint64_t more) MUST_CHECK;
/* -ENOSPC: the node is drained. */
int ruled_admit(const struct mem_node *node) MUST_CHECK;
/* A request of this tenant has failed: true when it may be tried again, because
 * the controller has granted what it lacked. Waits for that until the deadline,
 * without the lock. */
bool ruled_await(struct mem_node *node, struct mem_tenant *t,
		 uint64_t deadline_ns);
/* -EACCES: the tenant is not this node's to change. */
int ruled_check(const struct mem_node *node,
		const struct mem_tenant *t) MUST_CHECK;

/* ---- ruled_token.c ------------------------------------------------------ */

struct ruled_tokens {
	unsigned count;
	struct mem_token token[MEM_TENANT_TOKENS];
};

/* Whether it is one of those beside the tenant's own, and not over. */
bool ruled_has_token(const struct mem_tenant *t,
		     const struct ctl_token_hash *token, uint64_t now_ns);
/* Whether a connection's token still counts. */
bool ruled_keeps(const struct mem_tenant *t, const struct mem_conn *c,
		 uint64_t now_ns);
json_t *ruled_tokens_json(const struct mem_tenant *t);
/* From a row of the controller's list. */
int ruled_tokens_parse(const struct mem_node *node, const json_t *row,
		       struct ruled_tokens *out) MUST_CHECK;
bool ruled_tokens_have(const struct ruled_tokens *k,
		       const struct ctl_token_hash *token);
/* True: some are gone. */
bool ruled_tokens_set(struct mem_node *node, struct mem_tenant *t,
		      const struct ruled_tokens *k);
/* ---- ruled_narrow.c ----------------------------------------------------- */

struct ruled_narrows {
	unsigned count;
	struct mem_narrow row[MEM_NARROW_RULED_MAX];
};

/* From a row of the controller's list. */
int ruled_narrows_parse(const struct mem_node *node, const json_t *row,
			struct ruled_narrows *out) MUST_CHECK;
/* True: some are gone, or open something else now. */
bool ruled_narrows_set(struct mem_node *node, struct mem_tenant *t,
		       const struct ruled_narrows *k);

/* Ends what was made with tokens that count no more: connections, and tokens
 * that were handed on. */
void ruled_shut_out(struct mem_node *node, struct mem_tenant *t);
/* Tokens whose time is over. */
void ruled_tick(struct mem_node *node);
/* From the file of tenants. */
int ruled_load(struct mem_tenant *t, const json_t *row) MUST_CHECK;

#endif
