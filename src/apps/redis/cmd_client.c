/* SPDX-License-Identifier: Apache-2.0 */
/* Commands on the connection itself. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "bound.h"
#include "command.h"
#include "number.h"

enum {
	CLIENT_LINE_MAX = 512,
};

void redis_ping(struct call *c)
{
	struct resp_str text;

	if (c->argc > 2) {
		reply_error(c->out,
			    "ERR wrong number of arguments for 'ping' command");
	} else if (c->argc == 2) {
		text = call_arg(c, 1);
		reply_bulk(c->out, text.p, text.len);
	} else {
		reply_simple(c->out, "PONG");
	}
}

void redis_echo(struct call *c)
{
	struct resp_str text = call_arg(c, 1);

	reply_bulk(c->out, text.p, text.len);
}

void redis_select(struct call *c)
{
	int64_t n;

	if (!call_int(c, 1, &n))
		return;
	if (n == 0)
		reply_simple(c->out, "OK");
	else
		reply_error(c->out, "ERR DB index is out of range");
}

void redis_quit(struct call *c)
{
	reply_simple(c->out, "OK");
	c->client->is_ending = true;
}

/* ---- who the client is -------------------------------------------------- */

/* Takes the same time wherever the first difference is. */
static bool same_secret(struct resp_str given, const char *secret)
{
	size_t len = strlen(secret);
	unsigned char differs = given.len != len;

	for (size_t i = 0; i < given.len; i++)
		differs |=
			(unsigned char)(given.p[i] ^ secret[len ? i % len : 0]);
	return differs == 0;
}

static bool authenticate(struct call *c, struct resp_str user,
			 struct resp_str password)
{
	const char *secret = c->gateway->options->password;
	bool known = str_is(user, "default");

	/* Without a password everybody is let in, as in Redis. */
	if (known && (!secret || same_secret(password, secret))) {
		c->client->is_trusted = true;
		return true;
	}
	bound_pause(c->gateway, c->client);
	reply_error(c->out, "WRONGPASS invalid username-password pair or user "
			    "is disabled.");
	return false;
}

void redis_auth(struct call *c)
{
	struct resp_str user = {"default", 7};

	if (c->argc > 3) {
		call_syntax_error(c);
		return;
	}
	if (c->argc == 2 && !c->gateway->options->password) {
		reply_error(c->out, "ERR AUTH <password> called without any "
				    "password configured for the default "
				    "user. Are you sure your configuration "
				    "is correct?");
		return;
	}
	if (c->argc == 3)
		user = call_arg(c, 1);
	if (authenticate(c, user, call_arg(c, c->argc - 1)))
		reply_simple(c->out, "OK");
}

/* Names have no blanks and no line ends, so that CLIENT LIST can be read. */
static bool take_name(struct call *c, struct resp_str s,
		      char out[GATEWAY_NAME_MAX])
{
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] < '!' || s.p[i] > '~') {
			reply_error(c->out, "ERR Client names cannot contain "
					    "spaces, newlines or special "
					    "characters.");
			return false;
		}
	}
	if (s.len >= GATEWAY_NAME_MAX) {
		reply_error(c->out, "ERR a name has at most %d bytes here",
			    GATEWAY_NAME_MAX - 1);
		return false;
	}
	memcpy(out, s.p, s.len);
	out[s.len] = 0;
	return true;
}

static void answer_hello(struct call *c)
{
	reply_map(c->out, 7);
	reply_bulk_text(c->out, "server");
	reply_bulk_text(c->out, "redis");
	reply_bulk_text(c->out, "version");
	reply_bulk_text(c->out, GATEWAY_REDIS_VERSION);
	reply_bulk_text(c->out, "proto");
	reply_int(c->out, c->out->proto);
	reply_bulk_text(c->out, "id");
	reply_int(c->out, (int64_t)c->client->id);
	reply_bulk_text(c->out, "mode");
	reply_bulk_text(c->out, "standalone");
	reply_bulk_text(c->out, "role");
	reply_bulk_text(c->out, "master");
	reply_bulk_text(c->out, "modules");
	reply_array(c->out, 0);
}

/* HELLO [2|3 [AUTH user password] [SETNAME name]] */
void redis_hello(struct call *c)
{
	char name[GATEWAY_NAME_MAX] = "";
	int64_t proto = c->out->proto;
	bool named = false;

	if (c->argc >= 2 &&
	    (!number_parse(call_arg(c, 1).p, call_arg(c, 1).len, &proto) ||
	     proto < 2 || proto > 3)) {
		reply_error(c->out, "NOPROTO unsupported protocol version");
		return;
	}
	for (uint32_t i = 2; i < c->argc; i++) {
		if (call_is(c, i, "auth") && i + 2 < c->argc) {
			if (!authenticate(c, call_arg(c, i + 1),
					  call_arg(c, i + 2)))
				return;
			i += 2;
		} else if (call_is(c, i, "setname") && i + 1 < c->argc) {
			if (!take_name(c, call_arg(c, i + 1), name))
				return;
			named = true;
			i++;
		} else {
			reply_error(c->out,
				    "ERR Syntax error in HELLO option '%.*s'",
				    (int)u64_min(call_arg(c, i).len, 64),
				    call_arg(c, i).p);
			return;
		}
	}
	if (!c->client->is_trusted) {
		reply_error(
			c->out,
			"NOAUTH HELLO must be called with the client "
			"already authenticated, otherwise the HELLO <proto> "
			"AUTH <user> <pass> option can be used to "
			"authenticate the client and select the RESP "
			"protocol version at the same time");
		return;
	}
	if (named)
		memcpy(c->client->name, name, sizeof(name));
	c->out->proto = (uint32_t)proto;
	answer_hello(c);
}

void redis_reset(struct call *c)
{
	multi_release(&c->client->multi);
	c->client->is_trusted = !c->gateway->options->password;
	c->client->name[0] = 0;
	c->out->proto = 2;
	reply_simple(c->out, "RESET");
}

/* ---- CLIENT ------------------------------------------------------------- */

static void append_client(struct reply *into, const struct client *s,
			  uint64_t now_ms)
{
	char line[CLIENT_LINE_MAX];
	int len = snprintf(
		line, sizeof(line),
		"id=%llu addr=%s name=%s age=%llu idle=%llu db=0 qbuf=%zu "
		"obl=%zu resp=%u lib-name=%s lib-ver=%s\n",
		(unsigned long long)s->id, s->address, s->name,
		(unsigned long long)(now_ms - s->since_ms) / 1000,
		(unsigned long long)(now_ms - s->active_ms) / 1000,
		s->in_len - s->in_at, client_unsent(s), s->out.proto,
		s->lib_name, s->lib_version);

	reply_bytes(into, line, u64_min((uint64_t)len, sizeof(line) - 1));
}

static void append_clients(struct reply *into, const struct gateway *g)
{
	uint64_t now_ms = clock_mono_ms();
	const struct list *at;

	for (at = g->clients.next; at != &g->clients; at = at->next)
		append_client(into, container_of(at, struct client, link),
			      now_ms);
}

static void client_list(struct call *c)
{
	struct reply *text = &c->gateway->scratch;
	struct group *all = c->gateway->group;

	text->len = 0;
	group_look_begin(c->gateway);
	for (uint32_t i = 0; i < all->count; i++)
		append_clients(text, all->member[i]);
	group_look_end(c->gateway);
	reply_verbatim(c->out, text->buf, text->len);
}

static void client_info(struct call *c)
{
	struct reply *text = &c->gateway->scratch;

	text->len = 0;
	append_client(text, c->client, clock_mono_ms());
	reply_verbatim(c->out, text->buf, text->len);
}

static void client_getname(struct call *c)
{
	if (c->client->name[0])
		reply_bulk_text(c->out, c->client->name);
	else
		reply_nil(c->out);
}

static void client_setinfo(struct call *c)
{
	char *into = call_is(c, 2, "lib-name")	? c->client->lib_name
		     : call_is(c, 2, "lib-ver") ? c->client->lib_version
						: NULL;

	if (!into)
		reply_error(c->out, "ERR Unrecognized option '%.*s'",
			    (int)u64_min(call_arg(c, 2).len, 64),
			    call_arg(c, 2).p);
	else if (take_name(c, call_arg(c, 3), into))
		reply_simple(c->out, "OK");
}

void redis_client(struct call *c)
{
	struct resp_str sub = call_arg(c, 1);

	if (str_is(sub, "id") && c->argc == 2) {
		reply_int(c->out, (int64_t)c->client->id);
	} else if (str_is(sub, "getname") && c->argc == 2) {
		client_getname(c);
	} else if (str_is(sub, "setname") && c->argc == 3) {
		if (take_name(c, call_arg(c, 2), c->client->name))
			reply_simple(c->out, "OK");
	} else if (str_is(sub, "setinfo") && c->argc == 4) {
		client_setinfo(c);
	} else if (str_is(sub, "list") && c->argc == 2) {
		client_list(c);
	} else if (str_is(sub, "info") && c->argc == 2) {
		client_info(c);
	} else if ((str_is(sub, "no-evict") || str_is(sub, "no-touch")) &&
		   c->argc == 3) {
		reply_simple(c->out, "OK"); /* nothing is evicted here */
	} else {
		reply_error(c->out,
			    "ERR unknown subcommand or wrong number of "
			    "arguments for '%.*s'. Try CLIENT HELP.",
			    (int)u64_min(sub.len, 64), sub.p);
	}
}
