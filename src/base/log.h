/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of the control path: stderr, one line per event, level and room
 * first. The data path has counters instead. Every call keeps errno, may come
 * from any thread and writes its line with one write(2).
 *
 * Level and form are the one process-wide setting of this room. A program sets
 * them once in main with log_setup(); in a library whose program did not set it
 * up, the first event reads AQUIFER_LOG=err|warn|info|debug and
 * AQUIFER_LOG_JSON=1.
 */
#ifndef AQ_LOG_H
#define AQ_LOG_H

#include "base.h"

enum log_level {
	LOG_LEVEL_ERR,	 /* something asked for was not done */
	LOG_LEVEL_WARN,	 /* done, but the user should know; the default */
	LOG_LEVEL_INFO,	 /* once in the life of an object */
	LOG_LEVEL_DEBUG, /* for the authors */
};

/* main calls it before other threads exist. */
void log_setup(enum log_level level, bool json);
/* "err", "warn", "info" or "debug"; -EINVAL for anything else. */
int log_level_parse(const char *text, enum log_level *level) MUST_CHECK;
/* What the environment asks for, or else warn. */
enum log_level log_level_env(void);

/* From here on lines of text begin with the time, as a daemon's log needs it;
 * where they go to the journal it has the time. main's, after log_setup. */
void log_show_time(void);

bool log_enabled(enum log_level level);

void log_write(enum log_level level, const char *room, const char *fmt, ...)
	PRINTF(3, 4);

#define log_err(room, ...)   log_write(LOG_LEVEL_ERR, room, __VA_ARGS__)
#define log_warn(room, ...)  log_write(LOG_LEVEL_WARN, room, __VA_ARGS__)
#define log_info(room, ...)  log_write(LOG_LEVEL_INFO, room, __VA_ARGS__)
#define log_debug(room, ...) log_write(LOG_LEVEL_DEBUG, room, __VA_ARGS__)

/*
 * For events that a peer can trigger: at most LOG_LIMIT_BURST lines per
 * LOG_LIMIT_WINDOW_NS; the first line of the next window says how many were
 * left out. Zero-initialised, embedded in the object that logs and guarded by
 * that object's lock; time comes from the object's env.
 */
enum {
	LOG_LIMIT_BURST = 5,
};
#define LOG_LIMIT_WINDOW_NS 10000000000ull

struct log_limit {
	uint64_t window_start_ns; /* 0: nothing logged yet */
	uint32_t count;		  /* events in this window */
};

/* Whether this event may be logged; *left_out: how many before it were not. */
bool log_limit_pass(struct log_limit *l, uint64_t now_ns, uint32_t *left_out);

void log_write_limited(struct log_limit *l, uint64_t now_ns,
		       enum log_level level, const char *room, const char *fmt,
		       ...) PRINTF(5, 6);

#define log_warn_limited(limit, now_ns, room, ...) \
	log_write_limited(limit, now_ns, LOG_LEVEL_WARN, room, __VA_ARGS__)
#define log_info_limited(limit, now_ns, room, ...) \
	log_write_limited(limit, now_ns, LOG_LEVEL_INFO, room, __VA_ARGS__)

#endif
