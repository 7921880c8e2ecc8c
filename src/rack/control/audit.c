/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log. */
#include "audit_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"

enum {
	WORD_BYTES = 160,
	QUOTED_BYTES = 2 * WORD_BYTES,
	LINE_BYTES = 2048, /* five words that are all quotes, and more */
	LINES_BYTES = 8 * LINE_BYTES, /* that are written at once */
	BUCKETS = 64,		      /* of callers, for limits */
};

struct ctl_audit {
	int fd; /* -1: the log */
	bool json;
	char *path; /* of a file that is opened here, or NULL */
	pthread_mutex_t lock;
	bool has_failed;
	bool is_own;		 /* its files are renamed here */
	uint64_t bytes;		 /* of that file */
	struct audit_ring *ring; /* or NULL */
	struct log_limit limit[BUCKETS];
};

/* A descriptor, or -errno with words. */
static int open_file(const char *path)
{
	int fd = open(path,
		      O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW |
			      O_NONBLOCK | O_NOCTTY,
		      0600);
	struct stat st;
	int err = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EINVAL;
	if (!err)
		return fd;
	if (fd >= 0)
		(void)close(fd); /* nothing was written */
	return error_set(err, "cannot write the audit log %s: %s", path,
			 strerror(-err));
}

int ctl_audit_open(const char *path, bool json, struct ctl_audit **out)
{
	struct ctl_audit *a = calloc(1, sizeof(*a));

	if (!a)
		return error_set(-ENOMEM, "no memory for the audit log");
	a->fd = -1;
	a->json = json;
	if (path && strcmp(path, "-") == 0) {
		a->fd = STDERR_FILENO;
	} else if (path) {
		a->path = strdup(path);
		a->fd = a->path ? open_file(path)
				: error_set(-ENOMEM,
					    "no memory for the audit log");
		if (a->fd < 0) {
			int err = a->fd;

			free(a->path);
			free(a);
			return err;
		}
	}
	pthread_mutex_init(&a->lock, NULL);
	*out = a;
	return 0;
}

int ctl_audit_reopen(struct ctl_audit *a)
{
	int fd, former;

	if (!a->path)
		return 0;
	fd = open_file(a->path);
	if (fd < 0)
		return fd;
	pthread_mutex_lock(&a->lock);
	former = a->fd;
	a->fd = fd;
	pthread_mutex_unlock(&a->lock);
	(void)close(former); /* every line was written by itself */
	return 0;
}

void ctl_audit_close(struct ctl_audit *a)
{
	if (!a)
		return;
	if (a->path)
		(void)close(a->fd); /* every line was written by itself */
	if (a->ring)
		audit_ring_release(a->ring);
	free(a->ring);
	free(a->path);
	free(a);
}

int ctl_audit_keep(struct ctl_audit *a, bool is_own)
{
	struct audit_ring *ring = calloc(1, sizeof(*ring));
	struct stat st;
	int err = ring ? 0 : error_set(-ENOMEM, "no memory for the audit log");

	if (!err && is_own) {
		ASSERT(a->path && a->json);
		err = audit_ring_fill(ring, a->path);
		if (!err && fstat(a->fd, &st) == 0)
			a->bytes = (uint64_t)st.st_size;
	}
	if (err) {
		free(ring);
		return err;
	}
	a->ring = ring;
	a->is_own = is_own;
	return 0;
}

json_t *ctl_audit_last(struct ctl_audit *a)
{
	json_t *rows;

	pthread_mutex_lock(&a->lock);
	rows = a->ring ? audit_ring_json(a->ring) : json_array();
	pthread_mutex_unlock(&a->lock);
	return rows;
}

static bool is_refusal(unsigned status)
{
	return status == 401 || status == 403 || status == 429 || status >= 500;
}

/* Without the port, which is another one each time. */
static unsigned bucket_of(const char *who, const char *peer)
{
	const char *colon = strrchr(peer, ':');
	size_t len = colon ? (size_t)(colon - peer) : strlen(peer);
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)peer[i]) * 16777619u;
	for (; *who; who++)
		h = (h ^ (uint8_t)*who) * 16777619u;
	return h % BUCKETS;
}

/* What a stranger sent must not make lines of its own. */
static const char *plain(const char *text, char out[WORD_BYTES])
{
	size_t i;

	for (i = 0; i < WORD_BYTES - 1 && text[i]; i++)
		out[i] =
			(char)(text[i] > ' ' && text[i] <= '~' ? text[i] : '?');
	if (!i)
		out[i++] = '-';
	out[i] = 0;
	return out;
}

/* As in a text of JSON. All characters are plain. */
static const char *quoted(const char *word, char out[QUOTED_BYTES])
{
	char *at = out;

	for (; *word; word++) {
		if (*word == '"' || *word == '\\')
			*at++ = '\\';
		*at++ = *word;
	}
	*at = 0;
	return out;
}

/* One line as JSON, with its end; its length, or more than there is room for.
 */
static int format_json(const struct ctl_request *q, const char *when,
		       char word[4][WORD_BYTES], unsigned status,
		       uint32_t left_out, char line[LINE_BYTES])
{
	char text[5][QUOTED_BYTES], certificate[WORD_BYTES];

	for (unsigned i = 0; i < 4; i++)
		(void)quoted(word[i], text[i]);
	text[4][0] = 0;
	if (q->certificate)
		(void)quoted(plain(q->certificate, certificate), text[4]);
	return snprintf(
		line, LINE_BYTES,
		"{\"time\":\"%s\",\"refused\":%s,\"who\":\"%s\","
		"\"from\":\"%s\",\"method\":\"%s\",\"path\":\"%s\","
		"\"name\":\"%s\",\"status\":%u,\"left_out\":%u%s%s%s}\n",
		when, is_refusal(status) ? "true" : "false", text[0], text[1],
		ctl_method_name(q->method), text[2], text[3], status, left_out,
		q->certificate ? ",\"certificate\":\"" : "", text[4],
		q->certificate ? "\"" : "");
}

/* The line that the file gets; the ring's are JSON always. */
static int format(struct ctl_audit *a, const struct ctl_request *q,
		  const struct ctl_audit_event *e, unsigned status,
		  uint32_t left_out, char line[LINE_BYTES])
{
	char when[32], word[4][WORD_BYTES];
	time_t now = time(NULL);
	struct tm tm;
	int n = -1;

	(void)plain(e->who, word[0]);
	(void)plain(q->peer ? q->peer : "", word[1]);
	(void)plain(e->path ? e->path : q->path, word[2]);
	(void)plain(e->name ? e->name : "", word[3]);
	(void)gmtime_r(&now, &tm);
	(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (a->json || a->ring)
		n = format_json(q, when, word, status, left_out, line);
	if (a->ring && n > 0 && n < LINE_BYTES)
		audit_ring_add(a->ring, line, (size_t)n - 1);
	if (!a->json)
		n = snprintf(line, LINE_BYTES,
			     "%s %s %s from=%s %s %s name=%s status=%u "
			     "left_out=%u\n",
			     when, is_refusal(status) ? "refused" : "done",
			     word[0], word[1], ctl_method_name(q->method),
			     word[2], word[3], status, left_out);
	return n;
}

/* Where another file cannot be had, this one goes on. */
static void turn_over(struct ctl_audit *a)
{
	int fd, err = audit_files_shift(a->path, CTL_AUDIT_FILES);

	a->bytes = 0;
	fd = err ? err : open_file(a->path);
	if (fd < 0) {
		log_warn("audit", "no new file %s: %s", a->path, strerror(-fd));
		return;
	}
	(void)close(a->fd); /* every line was written by itself */
	a->fd = fd;
}

/* Lines on their way to the file: one write for all of them. */
struct lines {
	size_t bytes;
	bool has_failed;
	char text[LINES_BYTES];
};

static void put(struct ctl_audit *a, struct lines *lines)
{
	bool failed = lines->has_failed;

	if (a->is_own && a->bytes >= CTL_AUDIT_BYTES)
		turn_over(a);
	if (lines->bytes &&
	    write(a->fd, lines->text, lines->bytes) != (ssize_t)lines->bytes)
		failed = true;
	else
		a->bytes += lines->bytes;
	if (failed && !a->has_failed)
		log_warn("audit", "a line could not be written: %s",
			 strerror(errno));
	a->has_failed = failed;
	lines->bytes = 0;
	lines->has_failed = false;
}

static void add(struct ctl_audit *a, const struct ctl_audit_entry *e,
		uint64_t now_ns, struct lines *lines)
{
	const struct ctl_request *q = e->request;
	bool refused = is_refusal(e->status);
	char *line = lines->text + lines->bytes;
	uint32_t left_out = 0;
	int len;

	if (!refused &&
	    (e->status >= 300 || q->method == CTL_GET || e->event.is_quiet))
		return;
	if (refused &&
	    !log_limit_pass(
		    &a->limit[bucket_of(e->event.who, q->peer ? q->peer : "")],
		    now_ns, &left_out))
		return;
	len = format(a, q, &e->event, e->status, left_out, line);
	if (len <= 0 || len >= LINE_BYTES)
		lines->has_failed = true;
	else if (a->fd < 0)
		log_info("audit", "%.*s", len - 1, line);
	else
		lines->bytes += (size_t)len;
}

void ctl_audit_note_all(struct ctl_audit *a,
			const struct ctl_audit_entry *entry, unsigned count,
			uint64_t now_ns)
{
	struct lines lines;

	if (!a->ring && !a->path && a->fd < 0 && !log_enabled(LOG_LEVEL_INFO))
		return;
	lines.bytes = 0;
	lines.has_failed = false;
	pthread_mutex_lock(&a->lock);
	for (unsigned i = 0; i < count; i++) {
		add(a, &entry[i], now_ns, &lines);
		if (lines.has_failed ||
		    lines.bytes > LINES_BYTES - LINE_BYTES ||
		    (lines.bytes && i + 1 == count))
			put(a, &lines);
	}
	pthread_mutex_unlock(&a->lock);
}

void ctl_audit_note(struct ctl_audit *a, const struct ctl_request *q,
		    const struct ctl_audit_event *e, unsigned status,
		    uint64_t now_ns)
{
	const struct ctl_audit_entry one = {
		.request = q, .event = *e, .status = status};

	ctl_audit_note_all(a, &one, 1, now_ns);
}
