/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a chain share: which member it is. */
#ifndef AQ_BLK_CHAIN_PRIV_H
#define AQ_BLK_CHAIN_PRIV_H

#include "blk_chain.h"

#define BLK_CHAIN_MS_NS 1000000ull

static inline bool blk_chain_is_last(const struct blk_chain *c)
{
	return c->config.at + 1 >= c->config.count;
}

static inline bool blk_chain_is_reader(const struct blk_chain *c)
{
	return c->config.at + 1 == c->config.full;
}

/* A joiner without a copy is not waited for. */
static inline bool blk_chain_is_alone(const struct blk_chain *c)
{
	return blk_chain_is_reader(c) && c->config.is_fresh && !c->has_copied;
}

/* Whether it executes without asking those behind it. */
static inline bool blk_chain_is_end(const struct blk_chain *c)
{
	return blk_chain_is_last(c) || blk_chain_is_alone(c);
}

static inline bool blk_chain_rests(const struct blk_chain *c, uint64_t now_ns)
{
	return now_ns < c->rest_ns || now_ns < c->echo_rest_ns;
}

/* ---- blk_chain.c --------------------------------------------------------- */

/* Tells the one before where this one is, and asks for the lease. */
void blk_chain_tell_state(struct blk_chain *c, uint64_t now_ns);
/* What is kept goes on, as far as it can now. */
void blk_chain_proceed(struct blk_chain *c, uint64_t now_ns);

/* ---- blk_chain_copy.c ---------------------------------------------------- */

/* Sends what the window has room for. */
void blk_chain_pump(struct blk_chain *c, uint64_t now_ns);
void blk_chain_copy_begin(struct blk_chain *c, uint64_t now_ns);
void blk_chain_copy_hear(struct blk_chain *c, const struct blk_link_message *m,
			 uint64_t now_ns);
/* To the member so many places further down, or up. */
bool blk_chain_send(struct blk_chain *c, int step, struct blk_link_message *m);

#endif
