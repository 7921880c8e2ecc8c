/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people look at: events, numbers over time, and who may look. Events and
 * numbers are soft, a new leader begins without them. Sessions are rows, so
 * that a page goes on by itself when the controller is back:
 *
 *   look       SHA-256        by, until, at, port
 */
#ifndef AQ_CD_PAGE_PRIV_H
#define AQ_CD_PAGE_PRIV_H

#include "cd_priv.h"

/* ---- event.c: the last CD_EVENTS_MAX that happened ------------------------
 */

enum cd_about {
	CD_ABOUT_CONTROLLER,
	CD_ABOUT_NODE,
	CD_ABOUT_TENANT, /* for that tenant and the administrator only */
};

struct cd_events;

struct cd_events *cd_events_create(void);
void cd_events_destroy(struct cd_events *e);
/* Something that was seen; `name` is what it is about. */
PRINTF(4, 5)
void cd_event_seen(struct cd_core *core, enum cd_about about, const char *name,
		   const char *fmt, ...);
/* A change whose rows are staged already: forgotten if they are lost. */
PRINTF(4, 5)
void cd_event_staged(struct cd_core *core, enum cd_about about,
		     const char *name, const char *fmt, ...);
/* Changes after this one have not happened; see cd_stage_drop. */
void cd_events_drop(struct cd_core *core, uint64_t committed);
/* The first tick: what happened before it happened at this time. */
void cd_events_date(struct cd_core *core);
/* The last ones first; with `only` what this tenant may see. */
json_t *cd_events_json(const struct cd_core *core,
		       const struct cd_tenant *only);

/* ---- history.c: numbers over time -----------------------------------------
 */

struct cd_history;

struct cd_history *cd_history_create(void);
void cd_history_destroy(struct cd_history *h);
/* Every tick; notes once in a second of the time of day. */
void cd_history_tick(struct cd_core *core);
/* -ENOENT: there is no such series. Without `of` that of the whole rack. */
int cd_history_json(const struct cd_core *core, const struct cd_tenant *of,
		    const char *series, unsigned seconds,
		    json_t **out) MUST_CHECK;

/* What all nodes have handed out to a tenant, and what it holds with what they
 * may hand out to it without asking. */
uint64_t cd_tenant_used(const struct cd_core *core, const struct cd_tenant *t);
uint64_t cd_tenant_allocated(const struct cd_core *core,
			     const struct cd_tenant *t);

/* ---- look.c: codes and sessions -------------------------------------------
 */

struct cd_looks;

struct cd_looks *cd_looks_create(void);
void cd_looks_destroy(struct cd_looks *l);
/* All sessions, before the rows are read. */
void cd_looks_clear(struct cd_looks *l);
/* Sessions whose end has come. */
void cd_looks_tick(struct cd_core *core);
int cd_look_row(struct cd_core *core, const char *key,
		const json_t *row) MUST_CHECK;
/* The token by whose right a session looks, or NULL: it is none. */
const struct ctl_token_hash *cd_look_right(const struct cd_core *core,
					   const struct ctl_token_hash *hash);
/* A code for who has the token `by`, which works once and CD_CODE_MS long. */
void cd_look_offer(struct cd_core *core, const struct ctl_token_hash *by,
		   uint16_t port, char code[CTL_TOKEN_TEXT]);
/* Makes a code a session. -EPERM: it is none, or no more. -EAGAIN: there are
 * too many. */
int cd_look_redeem(struct cd_core *core, const char *code,
		   char token[CTL_TOKEN_TEXT], uint64_t *until_s) MUST_CHECK;

/* ---- overview_tree.c: names of jobs ---------------------------------------
 */

/* "ns": rows of at most CD_NAMES_SHOWN names, parents first, of that tenant or
 * of all; and "ns_left_off". */
void cd_overview_tree(struct cd_core *core, const struct cd_tenant *only,
		      json_t *tree);

/* ---- overview_moves.c: what is on its way ----------------------------------
 */

/* "moves": rows of what that tenant or everybody has on its way to or from the
 * vault, and of nodes that are drained; and "vault", what came of it so far. */
void cd_overview_moves(const struct cd_core *core, const struct cd_tenant *only,
		       json_t *tree);

/* ---- handlers -------------------------------------------------------------
 */

/* A file of page/, made a part of the program by tools/gen-page. */
struct cd_page_file {
	const char *path; /* "/page.css" */
	const char *type;
	const unsigned char *bytes;
	size_t len_bytes;
};
extern const struct cd_page_file cd_page_files[];
extern const unsigned cd_page_file_count;

void cd_handle_page(void *ctx, struct ctl_call *call);
void cd_handle_look(void *ctx, struct ctl_call *call);
void cd_handle_look_token(void *ctx, struct ctl_call *call);
void cd_handle_overview(void *ctx, struct ctl_call *call);
void cd_handle_history(void *ctx, struct ctl_call *call);

#endif
