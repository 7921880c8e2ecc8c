/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit log: one line per change and per refusal. A line says who (a name
 * and where the request came from), what (method, path and the name in the
 * body) and how it ended; never a token. Refusals of one caller are limited as
 * log lines are (log.h); the next one that is written says how many were not.
 *
 * Any thread.
 */
#ifndef AQ_CTL_AUDIT_H
#define AQ_CTL_AUDIT_H

#include "base/base.h"
#include "ctl_http.h"

enum {
	CTL_AUDIT_KEPT = 256,	   /* lines, for ctl_audit_last */
	CTL_AUDIT_FILES = 4,	   /* older ones, beside the one that grows */
	CTL_AUDIT_BYTES = 4 << 20, /* of each */
};

struct ctl_audit;

struct ctl_audit_event {
	const char *who;  /* a tenant, "admin", or "" */
	const char *name; /* that the body has, or NULL */
	/* Written instead of the request's path, which may be secret; or
	 * NULL. */
	const char *path;
	bool is_quiet; /* a success changes nothing */
};

struct ctl_audit_entry {
	const struct ctl_request *request;
	struct ctl_audit_event event;
	unsigned status; /* of the reply */
};

/* Opens a file for appending, "-" for stderr, or NULL for the log at the level
 * info. With json every line is one object. error_last() has the words. */
int ctl_audit_open(const char *path, bool json,
		   struct ctl_audit **out) MUST_CHECK;
void ctl_audit_close(struct ctl_audit *a); /* NULL is fine */
/* Goes on with the file that has the name now: the one before was renamed, as
 * logrotate(8) does. If there is none to be had it keeps the former;
 * error_last() has the words. */
int ctl_audit_reopen(struct ctl_audit *a) MUST_CHECK;
/* Remembers the last lines from now on. `is_own`: those that the file has, too,
 * and a file of CTL_AUDIT_BYTES is renamed to PATH.1, with which another one
 * begins; nobody else need do that. error_last() has the words. */
int ctl_audit_keep(struct ctl_audit *a, bool is_own) MUST_CHECK;
/* The last lines as objects, oldest first; none of one that does not remember.
 */
json_t *ctl_audit_last(struct ctl_audit *a);
/* Writes a line if it was a change or a refusal. It does not fail: a line that
 * cannot be written causes a warning in the log. */
void ctl_audit_note(struct ctl_audit *a, const struct ctl_request *request,
		    const struct ctl_audit_event *event, unsigned status,
		    uint64_t now_ns);
/* The same of several, whose lines reach the file together. */
void ctl_audit_note_all(struct ctl_audit *a,
			const struct ctl_audit_entry *entry, unsigned count,
			uint64_t now_ns);

#endif
