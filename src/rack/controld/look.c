/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may look at the page. Somebody with a token gets a code; the browser that
 * shows the code first gets a token of its own, a session, which may only look,
 * and sees what the first token sees. A session is worth nothing without the
 * token by whose right it was made: one that is taken back, or whose tenant is
 * removed, ends its sessions with it.
 *
 * Codes are soft and live for a minute. Only hashes of both are kept.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "cd_page_priv.h"

struct code {
	struct ctl_token_hash hash, by;
	uint64_t until_ns; /* 0: free */
	uint16_t port;
};

struct session {
	struct ctl_token_hash hash, by;
	uint64_t until_s;	  /* time of day; 0: free */
	char at[CD_NAME_MAX + 1]; /* the controller that serves its page */
	uint16_t port;		  /* of that machine's loopback; 0: none */
};

struct cd_looks {
	struct code code[CD_CODES_MAX];
	struct session session[CD_LOOKS_MAX];
};

struct cd_looks *cd_looks_create(void)
{
	return calloc(1, sizeof(struct cd_looks));
}

void cd_looks_destroy(struct cd_looks *l)
{
	free(l);
}

void cd_looks_clear(struct cd_looks *l)
{
	memset(l->session, 0, sizeof(l->session));
}

/* ---- rows ---------------------------------------------------------------- */

static void stage(struct cd_core *core, const struct session *s)
{
	char hash[CTL_TOKEN_TEXT], by[CTL_TOKEN_TEXT];

	ctl_token_hash_format(&s->hash, hash);
	ctl_token_hash_format(&s->by, by);
	cd_stage(core, "look", hash,
		 json_pack("{s:s, s:I, s:s, s:i}", "by", by, "until",
			   cd_int(s->until_s), "at", s->at, "port",
			   (int)s->port));
}

static void end_session(struct cd_core *core, struct session *s)
{
	char hash[CTL_TOKEN_TEXT];

	ctl_token_hash_format(&s->hash, hash);
	cd_stage(core, "look", hash, NULL);
	*s = (struct session){0};
}

static struct session *free_session(struct cd_looks *l)
{
	for (unsigned i = 0; i < CD_LOOKS_MAX; i++)
		if (!l->session[i].until_s)
			return &l->session[i];
	return NULL;
}

int cd_look_row(struct cd_core *core, const char *key, const json_t *row)
{
	struct session *free_one = free_session(core->looks), s = {0};
	const char *by = NULL, *at = NULL;
	uint64_t port = 0;
	int err = ctl_token_hash_parse(key, &s.hash);

	if (!err)
		err = ctl_field_string(row, "by", true, &by);
	if (!err)
		err = ctl_token_hash_parse(by, &s.by);
	if (!err)
		err = ctl_field_u64(row, "until", true, 1, INT64_MAX,
				    &s.until_s);
	if (!err)
		err = ctl_field_string(row, "at", true, &at);
	if (!err)
		err = ctl_field_u64(row, "port", true, 0, UINT16_MAX, &port);
	if (err)
		return err;
	if (!free_one || strlen(at) > CD_NAME_MAX)
		return error_set(-EINVAL,
				 "\"at\" is no name, or there are more than "
				 "%d",
				 CD_LOOKS_MAX);
	(void)snprintf(s.at, sizeof(s.at), "%s", at);
	s.port = (uint16_t)port;
	*free_one = s;
	return 0;
}

void cd_looks_tick(struct cd_core *core)
{
	for (unsigned i = 0; i < CD_LOOKS_MAX; i++) {
		struct session *s = &core->looks->session[i];

		if (s->until_s && core->wall_s >= s->until_s)
			end_session(core, s);
	}
}

uint16_t cd_core_page_port(const struct cd_core *core)
{
	for (unsigned i = 0; i < CD_LOOKS_MAX; i++) {
		const struct session *s = &core->looks->session[i];

		if (s->until_s && s->port && strcmp(s->at, core->name) == 0)
			return s->port;
	}
	return 0;
}

/* ---- sessions ------------------------------------------------------------ */

/* No early end: the time tells nothing. */
const struct ctl_token_hash *cd_look_right(const struct cd_core *core,
					   const struct ctl_token_hash *hash)
{
	const struct ctl_token_hash *by = NULL;

	for (unsigned i = 0; i < CD_LOOKS_MAX; i++) {
		const struct session *s = &core->looks->session[i];

		if (ctl_token_hash_equal(&s->hash, hash) &&
		    s->until_s > core->wall_s)
			by = &s->by;
	}
	return by;
}

/* One token's sessions are few, so that nobody keeps others from looking: the
 * one that ends first makes room. */
static struct session *place_for(struct cd_core *core,
				 const struct ctl_token_hash *by)
{
	struct session *oldest = NULL;
	unsigned count = 0;

	for (unsigned i = 0; i < CD_LOOKS_MAX; i++) {
		struct session *s = &core->looks->session[i];

		if (!s->until_s || !ctl_token_hash_equal(&s->by, by))
			continue;
		count++;
		if (!oldest || s->until_s < oldest->until_s)
			oldest = s;
	}
	if (count >= CD_LOOKS_EACH)
		end_session(core, oldest);
	return free_session(core->looks);
}

/* ---- codes --------------------------------------------------------------- */

static int random_token(struct cd_core *core, char text[CTL_TOKEN_TEXT],
			struct ctl_token_hash *hash)
{
	uint8_t bytes[CTL_TOKEN_BYTES];

	env_random(core->env, bytes, sizeof(bytes));
	ctl_token_format(bytes, text);
	return ctl_token_hash(text, hash);
}

void cd_look_offer(struct cd_core *core, const struct ctl_token_hash *by,
		   uint16_t port, char text[CTL_TOKEN_TEXT])
{
	struct code *c = &core->looks->code[0];
	int err;

	/* The place that is free, or else of the one that ends first. */
	for (unsigned i = 1; i < CD_CODES_MAX; i++)
		if (core->looks->code[i].until_ns < c->until_ns)
			c = &core->looks->code[i];
	*c = (struct code){
		.by = *by,
		.until_ns = env_now_ns(core->env) + CD_CODE_MS * 1000000ull,
		.port = port,
	};
	err = random_token(core, text, &c->hash);
	ASSERT(err == 0); /* we have written it ourselves */
}

static struct code *find_code(struct cd_core *core,
			      const struct ctl_token_hash *hash)
{
	uint64_t now = env_now_ns(core->env);
	struct code *found = NULL;

	for (unsigned i = 0; i < CD_CODES_MAX; i++) {
		struct code *c = &core->looks->code[i];

		if (ctl_token_hash_equal(&c->hash, hash) && c->until_ns > now)
			found = c;
	}
	return found;
}

int cd_look_redeem(struct cd_core *core, const char *text,
		   char token[CTL_TOKEN_TEXT], uint64_t *until_s)
{
	struct ctl_token_hash hash;
	struct code *c =
		ctl_token_hash(text, &hash) ? NULL : find_code(core, &hash);
	struct session *s;
	int err;

	if (!c)
		return error_set(-EPERM,
				 "this code has been used, is older than %d s, "
				 "or never was one; 'aquifer dashboard' prints "
				 "a new address",
				 CD_CODE_MS / 1000);
	s = place_for(core, &c->by);
	if (!s)
		return error_set(-EAGAIN,
				 "%d pages look at this controller already",
				 CD_LOOKS_MAX);
	*s = (struct session){
		.by = c->by,
		.until_s = core->wall_s + CD_LOOK_S,
		.port = c->port,
	};
	*c = (struct code){0};
	(void)snprintf(s->at, sizeof(s->at), "%s", core->name);
	err = random_token(core, token, &s->hash);
	ASSERT(err == 0); /* we have written it ourselves */
	stage(core, s);
	*until_s = s->until_s;
	return 0;
}
