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

/* Tokens as the controller has them; what has fewer ends connections. */
bool ruled_has_token(const struct mem_tenant *t,
		     const struct ctl_token_hash *token);
json_t *ruled_tokens_json(const struct mem_tenant *t);
/* From the file of tenants. */
int ruled_load(struct mem_tenant *t, const json_t *row) MUST_CHECK;

#endif
