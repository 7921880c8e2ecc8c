/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines to stderr, as text or as JSON. */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "json_out.h"

enum {
	TIME_BYTES = 40,
	MESSAGE_MAX = 1024,
	LINE_MAX_BYTES =
		2048, /* below PIPE_BUF: lines of processes never mix */
};

/* The level and form bits; SETUP_DONE tells them from the initial 0. */
enum setup {
	SETUP_LEVEL = 3u,
	SETUP_JSON = 1u << 2,
	SETUP_JOURNAL = 1u << 3, /* lines carry the journal's priority */
	SETUP_DONE = 1u << 4,
	SETUP_TIME = 1u << 5, /* lines of text begin with the time */
};

/* The process-wide setting that log.h describes. A single word, whose threads
 * need no order with anything else: relaxed. */
static atomic_uint log_config;

static const char *const level_names[] = {"err", "warn", "info", "debug"};

int log_level_parse(const char *text, enum log_level *level)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(level_names); i++) {
		if (strcmp(text, level_names[i]) == 0) {
			*level = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

enum log_level log_level_env(void)
{
	const char *text = secure_getenv("AQUIFER_LOG");
	enum log_level level = LOG_LEVEL_WARN;

	if (text && log_level_parse(text, &level))
		return LOG_LEVEL_WARN;
	return level;
}

/* systemd names the journal's socket in JOURNAL_STREAM as device:inode. */
static bool stderr_is_journal(void)
{
	const char *text = secure_getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return text && sscanf(text, "%llu:%llu", &dev, &ino) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev &&
	       st.st_ino == ino;
}

void log_setup(enum log_level level, bool json)
{
	unsigned v = (unsigned)level | SETUP_DONE;

	if (json)
		v |= SETUP_JSON;
	else if (stderr_is_journal())
		v |= SETUP_JOURNAL;
	atomic_store_explicit(&log_config, v, memory_order_relaxed);
}

static unsigned setup_get(void)
{
	unsigned v = atomic_load_explicit(&log_config, memory_order_relaxed);
	const char *json;

	if (LIKELY(v & SETUP_DONE))
		return v;
	/* Threads that come here together compute the same value. */
	json = secure_getenv("AQUIFER_LOG_JSON");
	log_setup(log_level_env(), json && strcmp(json, "1") == 0);
	return atomic_load_explicit(&log_config, memory_order_relaxed);
}

void log_show_time(void)
{
	atomic_store_explicit(&log_config, setup_get() | SETUP_TIME,
			      memory_order_relaxed);
}

bool log_enabled(enum log_level level)
{
	return (unsigned)level <= (setup_get() & SETUP_LEVEL);
}

/* UTC, to the microsecond: 2026-01-31T12:00:00.000000Z. */
static void time_text(char out[TIME_BYTES])
{
	struct timespec ts;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	n = strftime(out, TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, TIME_BYTES - n, ".%06ldZ", ts.tv_nsec / 1000);
}

static size_t line_text(char line[LINE_MAX_BYTES], unsigned setup,
			enum log_level level, const char *room, char *msg)
{
	/* syslog's severities */
	static const char *const priority[] = {"<3>", "<4>", "<6>", "<7>"};
	char *c, now[TIME_BYTES + 1] = "";

	/* One event stays one line, whatever a peer put into it. */
	for (c = msg; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = ' ';
	if (setup & SETUP_TIME && !(setup & SETUP_JOURNAL)) {
		time_text(now);
		strcat(now, " ");
	}
	return (size_t)snprintf(line, LINE_MAX_BYTES, "%s%s%s %s: %s\n",
				setup & SETUP_JOURNAL ? priority[level] : "",
				now, level_names[level], room, msg);
}

static size_t line_json(char line[LINE_MAX_BYTES], enum log_level level,
			const char *room, const char *msg)
{
	char now[TIME_BYTES];
	size_t n;

	time_text(now);
	n = (size_t)snprintf(line, LINE_MAX_BYTES,
			     "{\"level\":\"%s\",\"room\":\"%s\","
			     "\"time\":\"%s\",\"pid\":%d,\"msg\":\"",
			     level_names[level], room, now, (int)getpid());
	n += json_out_escape(line + n, LINE_MAX_BYTES - n - 3, msg);
	line[n++] = '"';
	line[n++] = '}';
	line[n++] = '\n';
	return n;
}

static PRINTF(3, 0) void write_line(enum log_level level, const char *room,
				    const char *fmt, va_list ap)
{
	char msg[MESSAGE_MAX], line[LINE_MAX_BYTES];
	unsigned setup = setup_get();
	size_t n;

	vsnprintf(msg, sizeof(msg), fmt, ap);
	if (setup & SETUP_JSON)
		n = line_json(line, level, room, msg);
	else
		n = line_text(line, setup, level, room, msg);
	/* There is nobody to tell that the log is broken. */
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}

void log_write(enum log_level level, const char *room, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (log_enabled(level)) {
		/* %m in fmt shows the caller's errno. */
		errno = saved;
		va_start(ap, fmt);
		write_line(level, room, fmt, ap);
		va_end(ap);
	}
	errno = saved;
}

bool log_limit_pass(struct log_limit *l, uint64_t now_ns, uint32_t *left_out)
{
	*left_out = 0;
	if (l->window_start_ns == 0 ||
	    now_ns - l->window_start_ns >= LOG_LIMIT_WINDOW_NS) {
		if (l->count > LOG_LIMIT_BURST)
			*left_out = l->count - LOG_LIMIT_BURST;
		*l = (struct log_limit){.window_start_ns = now_ns, .count = 1};
		return true;
	}
	if (l->count < UINT32_MAX)
		l->count++;
	return l->count <= LOG_LIMIT_BURST;
}

void log_write_limited(struct log_limit *l, uint64_t now_ns,
		       enum log_level level, const char *room, const char *fmt,
		       ...)
{
	int saved = errno;
	uint32_t left_out;
	va_list ap;

	if (log_enabled(level) && log_limit_pass(l, now_ns, &left_out)) {
		if (left_out)
			log_write(level, room,
				  "%u similar events were not logged",
				  left_out);
		errno = saved;
		va_start(ap, fmt);
		write_line(level, room, fmt, ap);
		va_end(ap);
	}
	errno = saved;
}
