/* SPDX-License-Identifier: Apache-2.0 */
/* Emptying a memory node that takes nothing new. */
#ifndef AQ_CLI_DRAIN_H
#define AQ_CLI_DRAIN_H

#include "cli_admin.h"
#include "client/move.h"

struct cli_drain_right;

/*
 * Moves what can be moved from the node to others, and says of the rest what it
 * is and why it stays: on standard output as it goes, or as members "moved" and
 * "stays" of one object. `m` has the controller. The exit code: CLI_FAILED
 * where something that can be moved was not.
 */
int cli_drain_run(struct cli_admin *m, const char *node, bool as_json);

/* Members of the controller's answers; "" and 0 where they are missing. */
static inline const char *cli_drain_text(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));

	return s ? s : "";
}

static inline uint64_t cli_drain_number(const json_t *row, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(row, key));
}

/* ---- cli_drain_copies.c -------------------------------------------------- */

/* How many blocks with copies are there, as the controller says of the node;
 * whose they are is remembered in the object `copied`. */
uint64_t cli_drain_copies_note(json_t *copied, const json_t *answer);
/* Adds to `moved` those that are not there any more. */
void cli_drain_copies_list(json_t *copied, const json_t *answer, json_t *moved,
			   bool as_json);

/* ---- cli_drain_right.c --------------------------------------------------- */

/* The right of a tenant, until it is closed or this process ends. `m` outlives
 * it. */
int cli_drain_right_open(struct cli_admin *m, const char *tenant,
			 struct cli_drain_right **out) MUST_CHECK;
/* NULL is allowed. */
void cli_drain_right_close(struct cli_drain_right *r);
bool cli_drain_right_is_of(const struct cli_drain_right *r, const char *tenant);
/* A rack with that right, to be closed before it. */
int cli_drain_right_rack(const struct cli_drain_right *r,
			 struct aq_rack **out) MUST_CHECK;

/* ---- cli_drain_move.c ---------------------------------------------------- */

/* Makes the table's next generation, of the same size, on nodes that take
 * something new; its clients follow. -errno with words: it is as it was, or the
 * next who resizes it goes on. */
int cli_drain_table(const struct cli_drain_right *r,
		    const char *table) MUST_CHECK;
/* Moves regions, together, to the node whose name is then in `to`; errors as
 * client_move has them. */
int cli_drain_regions(const struct cli_drain_right *r,
		      const struct client_move *move,
		      char to[CLIENT_NODE_NAME_MAX]) MUST_CHECK;
/* Ends what is left of moves from the node that were not finished. */
int cli_drain_settle(const struct cli_drain_right *r,
		     const char *node) MUST_CHECK;

#endif
