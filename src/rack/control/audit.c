/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log. */
#include "ctl_audit.h"

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
	LINE_BYTES = 1024,
	WORD_BYTES = 160,
	BUCKETS = 64, /* of callers, for limits */
};

struct ctl_audit {
	int fd; /* -1: the log */
	bool json;
	char *path; /* of a file that is opened here, or NULL */
	pthread_mutex_t lock;
	bool has_failed;
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
	free(a->path);
	free(a);
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
	out[i] = 0;
	return i ? out : "-";
}

static int format(const struct ctl_audit *a, char line[LINE_BYTES],
		  const struct ctl_request *q, const struct ctl_audit_event *e,
		  unsigned status, uint32_t left_out)
{
	char when[32], word[4][WORD_BYTES];
	const char *who = plain(e->who, word[0]);
	const char *peer = plain(q->peer ? q->peer : "", word[1]);
	const char *path = plain(e->path ? e->path : q->path, word[2]);
	const char *name = plain(e->name ? e->name : "", word[3]);
	time_t now = time(NULL);
	struct tm tm;
	json_t *tree;
	char *text;
	int n = -1;

	(void)gmtime_r(&now, &tm);
	(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (!a->json)
		return snprintf(line, LINE_BYTES,
				"%s %s %s from=%s %s %s name=%s status=%u "
				"left_out=%u\n",
				when, is_refusal(status) ? "refused" : "done",
				who, peer, ctl_method_name(q->method), path,
				name, status, left_out);
	tree = json_pack("{s:s, s:b, s:s, s:s, s:s, s:s, s:s, s:i, s:i}",
			 "time", when, "refused", is_refusal(status), "who",
			 who, "from", peer, "method",
			 ctl_method_name(q->method), "path", path, "name", name,
			 "status", (int)status, "left_out", (int)left_out);
	if (tree && q->certificate)
		(void)json_object_set_new(
			tree, "certificate",
			json_string(plain(q->certificate, word[3])));
	text = tree ? json_dumps(tree, JSON_COMPACT) : NULL;
	if (text)
		n = snprintf(line, LINE_BYTES, "%s\n", text);
	free(text);
	json_decref(tree);
	return n;
}

static void put(struct ctl_audit *a, const char *line, int len)
{
	bool failed = len <= 0 || len >= LINE_BYTES;

	if (!failed && a->fd < 0)
		log_info("audit", "%.*s", len - 1, line);
	else if (!failed)
		failed = write(a->fd, line, (size_t)len) != len;
	if (failed && !a->has_failed)
		log_warn("audit", "a line could not be written: %s",
			 strerror(errno));
	a->has_failed = failed;
}

void ctl_audit_note(struct ctl_audit *a, const struct ctl_request *q,
		    const struct ctl_audit_event *e, unsigned status,
		    uint64_t now_ns)
{
	bool refused = is_refusal(status);
	uint32_t left_out = 0;
	char line[LINE_BYTES];
	int len;

	if (!refused && (status >= 300 || q->method == CTL_GET || e->is_quiet))
		return;
	if (!a->path && a->fd < 0 && !log_enabled(LOG_LEVEL_INFO))
		return;
	pthread_mutex_lock(&a->lock);
	if (!refused ||
	    log_limit_pass(&a->limit[bucket_of(e->who, q->peer ? q->peer : "")],
			   now_ns, &left_out)) {
		len = format(a, line, q, e, status, left_out);
		put(a, line, len);
	}
	pthread_mutex_unlock(&a->lock);
}
