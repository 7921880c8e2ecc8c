/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the switch says about sessions: those that are broken, those that
 * another run of the switch does not know, and strays, which nobody here has
 * declared. A stray of our own name was left by a process that is dead, and its
 * application attaches again when its heartbeats fail; one that is broken is of
 * no use to anybody. Both end after the patience of heartbeats.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "eng_priv.h"

static struct eng_session *find_by_id(const struct eng *eng, uint64_t id)
{
	for (unsigned i = 0; i < ENG_SESSION_MAX; i++)
		if (eng->session[i] && eng->session[i]->is_told &&
		    eng->session[i]->id == id)
			return eng->session[i];
	return NULL;
}

static uint64_t number(const json_t *row, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(row, key));
}

static bool is_word(const json_t *row, const char *key, const char *word)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text && strcmp(text, word) == 0;
}

/* ---- strays -------------------------------------------------------------- */

static void note_stray(struct eng_switch *w, uint32_t id, uint64_t now_ns)
{
	unsigned i = 0;

	while (i < w->stray_count && w->stray[i].id != id)
		i++;
	if (i == ENG_STRAY_MAX)
		return; /* when there is room again */
	if (i == w->stray_count)
		w->stray[w->stray_count++] = (struct eng_stray){id, now_ns, 0};
	w->stray[i].is_there = true;
}

/* Ends those that were there long enough, and forgets those that are gone. */
static void end_strays(struct eng *eng, uint64_t now_ns)
{
	const uint64_t patience_ns =
		ENG_HEARTBEAT_MS * ENG_HEARTBEAT_MISSES * 1000000ull;
	struct eng_switch *w = eng->at_switch;
	unsigned kept = 0;

	for (unsigned i = 0; i < w->stray_count; i++) {
		struct eng_stray *s = &w->stray[i];

		if (!s->is_there)
			continue;
		if (now_ns - u64_max(s->seen_ns, eng->awake.since_ns) >
			    patience_ns &&
		    ctl_switch_tell(&w->ctl, "tell cowbird end id=%u", s->id) ==
			    0) {
			log_info("engine",
				 "session %u of the switch is nobody's: it "
				 "ends",
				 s->id);
			eng->sessions_lost++;
			continue;
		}
		s->is_there = false;
		w->stray[kept++] = *s;
	}
	w->stray_count = kept;
}

/* ---- sessions ------------------------------------------------------------ */

/* Another run of the switch knows none of ours. */
static bool is_same_run(struct eng_switch *w, const json_t *show)
{
	const char *run = ctl_switch_run(show);

	if (!run || strcmp(run, w->run) == 0)
		return true;
	log_warn("engine", "switch %s was started anew", w->name);
	(void)snprintf(w->run, sizeof(w->run), "%s", run);
	return false;
}

void eng_switch_learn(struct eng *eng, const json_t *show, uint64_t asked_ns)
{
	struct eng_switch *w = eng->at_switch;
	bool known[ENG_SESSION_MAX] = {false};
	bool is_same = is_same_run(w, show);
	const json_t *rows = json_object_get(show, "sessions"), *row;
	size_t i;

	/* Not listed, because they are as they were. */
	if (!rows && is_same)
		return;
	w->changes = number(show, "changes");
	json_array_foreach(rows, i, row)
	{
		uint32_t id = (uint32_t)number(row, "id");
		struct eng_session *s = find_by_id(eng, id);

		if (s) {
			known[s->slot] = true;
			s->pending = (uint32_t)number(row, "requests");
			s->err = -(int)number(row, "err");
		} else if (is_word(row, "owner", eng->name) ||
			   is_word(row, "state", "broken")) {
			note_stray(w, id, asked_ns);
		}
	}
	for (i = 0; i < ENG_SESSION_MAX; i++) {
		struct eng_session *s = eng->session[i];

		/* What was told later could not be in the answer. */
		if (s && s->is_started && s->told_ns < asked_ns &&
		    (!known[i] || !is_same)) {
			s->err = -ECONNRESET;
			s->is_told = false;
		}
	}
	end_strays(eng, asked_ns);
}

/* ---- the tick ------------------------------------------------------------ */

static void take_counters(struct eng *eng, const json_t *hello)
{
	const json_t *p = ctl_switch_program(hello, "cowbird");

	for (unsigned i = 0; p && i < OFFLOAD_C_COUNT; i++)
		eng->counter[i] = number(p, i == OFFLOAD_C_CONFLICTS
						    ? "held"
						    : eng_counter_names[i]);
}

static void say_silence(struct eng_switch *w, int err)
{
	if (!err == !w->is_silent)
		return;
	w->is_silent = err != 0;
	if (err)
		log_warn("engine", "%s", error_last());
	else
		log_info("engine", "switch %s answers again", w->name);
}

void eng_switch_tick(struct eng *eng)
{
	struct eng_switch *w = eng->at_switch;
	uint64_t now_ns = client_clock_now_ns(eng->clock);
	json_t *show = NULL, *hello = NULL;
	bool wants_all = now_ns >= w->hello_ns;
	char line[64] = "tell cowbird show";
	int err;

	/* Faults are learned of at once; that nothing happens is no reason to
	 * hold up frames with a list of it. */
	if (!wants_all && w->changes)
		(void)snprintf(line, sizeof(line),
			       "tell cowbird show unless=%" PRIu64, w->changes);
	err = ctl_switch_ask(&w->ctl, line, &show);
	if (!err && wants_all) {
		w->hello_ns = now_ns + ENG_HELLO_MS * 1000000ull;
		err = ctl_switch_ask(&w->ctl, "hello", &hello);
	}
	say_silence(w, err);
	pthread_mutex_lock(&eng->lock);
	if (show)
		eng_switch_learn(eng, show, now_ns);
	if (hello)
		take_counters(eng, hello);
	eng_tick(eng);
	pthread_mutex_unlock(&eng->lock);
	json_decref(show);
	json_decref(hello);
}
