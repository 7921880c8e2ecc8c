/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between machines: what one takes, and what takes several. */
#ifndef AQ_FIGURES_EFIG_PATH_H
#define AQ_FIGURES_EFIG_PATH_H

#include "base/base.h"

enum efig_link {
	EFIG_LINK_10G,	/* the paper's */
	EFIG_LINK_100G, /* sim/model_constants.h */
};

/* ---- efig_path.c --------------------------------------------------------- */

/* A message of so many bytes, from the call at one end until it is seen at the
 * other. */
uint64_t efig_message_ps(enum efig_link link, uint64_t bytes);
uint64_t efig_bytes_ps(enum efig_link link, uint64_t bytes);

/* Until a new block of a file or queue takes its first record. */
double efig_grow_us(enum efig_link link);

struct efig_tell_result {
	double mean_us, last_us; /* from the put until a subscriber has it */
};

/* -ENOMEM. */
int efig_tell_run(unsigned subscribers, enum efig_link link,
		  struct efig_tell_result *out) MUST_CHECK;

/* ---- efig_move.c --------------------------------------------------------- */

struct efig_move_result {
	double split_ms;
	double moved_mb, messages;
	double before_p50_us, before_p99_us; /* of gets of 100 KB */
	double during_p50_us, during_p99_us;
	double gets;
};

/* Splits a full block of 128 MiB while one client gets. -ENOMEM, -EPROTO. */
int efig_move_run(enum efig_link link, uint64_t seed,
		  struct efig_move_result *out) MUST_CHECK;

/* ---- efig_chain.c -------------------------------------------------------- */

struct efig_chain_result {
	double write_us, read_us;
};

/* -ENOMEM; -EIO: a change was not answered. */
int efig_chain_run(unsigned length, enum efig_link link,
		   struct efig_chain_result *out) MUST_CHECK;

#endif
