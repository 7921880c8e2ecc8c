/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request and its reply, without any socket: ctl_server.h carries them over
 * HTTP, tests and the simulator call the handlers with them directly.
 *
 * Errors are {"error": {"code": "-ENOENT", "message": .., "advice": ..}} with a
 * fitting HTTP status; one table converts.
 */
#ifndef AQ_CTL_HTTP_H
#define AQ_CTL_HTTP_H

#include <jansson.h>

#include "base/base.h"

enum {
	CTL_PATH_MAX = 512, /* bytes, with the NUL */
	/* Of a request, where its route says nothing else: the longest walk, in
	 * hex. */
	CTL_BODY_MAX = 72 << 10,
	CTL_DEPTH_MAX = 8,    /* of JSON in a request */
	CTL_SEGMENT_MAX = 64, /* a variable part of a path, with the NUL */
	CTL_SEGMENTS = 2,     /* variable parts of one path */
};

enum ctl_method {
	CTL_GET,
	CTL_POST,
	CTL_PATCH,
	CTL_DELETE,
	CTL_METHOD_COUNT,
	CTL_OTHER = CTL_METHOD_COUNT, /* never routed */
};

/* "GET"; "OTHER" for what is none of them. */
const char *ctl_method_name(enum ctl_method m);
enum ctl_method ctl_method_parse(const char *name);

struct ctl_request {
	enum ctl_method method;
	const char *path;  /* as it came, without the query */
	const char *token; /* what followed "Bearer ", or NULL */
	const char *body;
	size_t body_bytes; /* above what the route takes: body is NULL */
	bool is_local;	   /* came over the unix socket */
	const char *peer;  /* who sent it, in words, or NULL */
	/* The party that limits hold for: an address or a user, or NULL. */
	const char *origin;
	/* The name in the caller's certificate, if one was needed, or NULL. */
	const char *certificate;
	/* Of ctl_server.h, to answer later; NULL: it must be answered now. */
	struct ctl_exchange *exchange;
};

/* A header of a reply; a row without a name ends a list. */
struct ctl_header {
	const char *name, *value;
};

/* Zero-initialised by the caller, who releases it. */
struct ctl_reply {
	unsigned status;
	const char *content_type; /* static; NULL: no body */
	char *body;		  /* heap */
	size_t body_bytes;
	unsigned retry_s; /* with 429: after so many seconds; 0: not said */
	const struct ctl_header *headers; /* static; beside those; or NULL */
};

void ctl_reply_release(struct ctl_reply *r);
/* The tree as text on the heap, with a NUL; NULL: there is no memory, or it has
 * words that are no UTF-8. */
char *ctl_json_text(const json_t *tree, size_t *len_bytes) MUST_CHECK;
/* Takes over the reference. NULL (no memory for it) becomes an error. */
void ctl_reply_json(struct ctl_reply *r, unsigned status, json_t *tree);
/* Takes over the text, which is on the heap. */
void ctl_reply_text(struct ctl_reply *r, char *text, size_t text_bytes,
		    const char *content_type);
void ctl_reply_none(struct ctl_reply *r); /* 204 */
/* An error in words. */
void ctl_reply_error(struct ctl_reply *r, int err, const char *fmt, ...)
	PRINTF(3, 4);
/* The same with this thread's error_last() for words. */
void ctl_reply_last_error(struct ctl_reply *r, int err);
/* 429: the caller has asked too often; ctl_rate.h says how long to wait. */
void ctl_reply_too_many(struct ctl_reply *r, const char *who, uint64_t wait_ns);

/* The HTTP status of -errno. */
unsigned ctl_status_of(int err);

/* ---- routes ------------------------------------------------------------- */

struct ctl_call;

struct ctl_route {
	enum ctl_method method;
	/* "/v1/regions/:" where ':' is one segment; a '*' at its end is all
	 * that follows, with slashes, or nothing. */
	const char *pattern;
	void (*run)(void *ctx, struct ctl_call *call);
	unsigned level; /* whose token; defined by the table's room */
};

/* How many bytes the body of a route's requests may have; CTL_BODY_MAX where
 * there is no row. */
struct ctl_body_max {
	void (*run)(void *ctx, struct ctl_call *call); /* of the route */
	uint32_t bytes;
};

/* Routes, and what is known about their bodies before they are read. */
struct ctl_routes {
	const struct ctl_route *route;
	unsigned route_count;
	const struct ctl_body_max *body_max;
	unsigned body_max_count;
};

/* What the object in the body of a route's requests may have, with spaces
 * between. */
struct ctl_members {
	void (*run)(void *ctx, struct ctl_call *call); /* of the route */
	const char *words;
};

/* A routed request. */
struct ctl_call {
	const struct ctl_request *request;
	struct ctl_reply *reply;
	const struct ctl_route *route;
	void *caller;  /* found by the token, by the table's room */
	void *scope;   /* what narrows its rights, in the same way, or NULL */
	bool sees_all; /* the administrator, or the owner's own socket */
	char segment[CTL_SEGMENTS][CTL_SEGMENT_MAX];
	const char *rest; /* of the path, for '*'; else NULL */
	json_t *body;	  /* borrowed; an object, empty when there was none */
};

/*
 * The row for this method and path; fills the segments. -ENOENT: no such path,
 * -EOPNOTSUPP: the path exists for other methods, -E2BIG: a path or a segment
 * that is too long. error_last() has the words.
 */
int ctl_route_find(const struct ctl_route *table, unsigned count,
		   enum ctl_method method, const char *path,
		   struct ctl_call *call) MUST_CHECK;

/* How many bytes the body of such a request may have; CTL_BODY_MAX for a path
 * that is in no row, so that the answer can say so. */
uint32_t ctl_routes_body_max(const struct ctl_routes *routes,
			     enum ctl_method method, const char *path);

/* ---- bodies ------------------------------------------------------------- */

/* The object in a request's body; no body is an empty object. -E2BIG, -EINVAL;
 * error_last() has the words. */
int ctl_body_parse(const char *body, size_t body_bytes,
		   json_t **out) MUST_CHECK;

/* -EINVAL, with the name of a member that the request does not have: somebody
 * has mistyped it, or means what is not done here. A route without a row is not
 * looked at. */
int ctl_body_check(const struct ctl_call *call, const struct ctl_members *table,
		   unsigned count) MUST_CHECK;

/*
 * Members of a body. A missing member leaves *out as it is and returns 0,
 * unless it is `required`; one that is there must be of the kind and in the
 * range, else -EINVAL with words that name it.
 */
int ctl_field_u64(const json_t *body, const char *name, bool required,
		  uint64_t min, uint64_t max, uint64_t *out) MUST_CHECK;
int ctl_field_string(const json_t *body, const char *name, bool required,
		     const char **out) MUST_CHECK;

/* A queue pair that wants to be connected: what both sides tell each other. */
struct ctl_pair {
	uint8_t gid[16];
	uint32_t qpn;
	uint32_t psn;
	uint8_t mtu;	   /* code: 128 << mtu bytes; 4096 bytes if not given */
	uint8_t rd_atomic; /* READs and atomics at a time; 16 if not given */
};

/* "gid", "qpn", "psn", and if they are there "mtu" and "rd_atomic". */
int ctl_field_pair(const json_t *body, struct ctl_pair *out) MUST_CHECK;

/* A name: 1 to max_chars of letters, digits, '-', '_' and '.', not beginning
 * with '-' or '.'. */
bool ctl_name_is_valid(const char *name, size_t max_chars);

/* Whether a program of protocol 1.x can talk to "MAJOR.MINOR": 0, -EINVAL for
 * what is no version, -EPROTONOSUPPORT; error_last() names both. */
#define CTL_PROTO "1.0"
int ctl_proto_check(const char *proto) MUST_CHECK;

/* A random number of each run of a server, as hex digits, by which a client
 * recognises that the server was restarted. */
enum {
	CTL_INCARNATION_TEXT = 16 + 1
};
void ctl_incarnation_format(uint64_t number, char out[CTL_INCARNATION_TEXT]);

#endif
