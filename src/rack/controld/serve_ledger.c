/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger's thread: it leads, keeps leading, and commits. While it commits,
 * requests gather; they share the next transaction. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cd_serve_priv.h"
#include "ledger/ledger_rows.h"

enum {
	LEAD_AGAIN_MS = 500, /* between two tries */
	COMMIT_NS_MAX = 20000000,
	AT_ONCE = 16, /* transactions, after one that has waited in vain */
};

/* Something has become certain, or will not. */
static void settled(struct cd_server *s)
{
	cd_server_settle(s);
	(void)pthread_cond_broadcast(&s->settled);
	/* Another thread for nothing would cost as much as a change. */
	if (s->waits.count)
		cd_server_due(s);
}

/* ---- leading ------------------------------------------------------------ */

/* What one try to lead has brought, while the lock was not held. */
struct attempt {
	int lead_err, read_err;
	bool is_same; /* the rows are those that the core has */
	uint64_t term;
	char leader[LEDGER_WHO_MAX];
	char why[ERROR_TEXT_MAX];
	struct ledger_rows rows;
};

static void try_to_lead(struct cd_server *s, struct attempt *a)
{
	a->lead_err = ledger_lead(s->ledger, s->address, &a->term);
	if (a->lead_err)
		(void)snprintf(a->why, sizeof(a->why), "%s", error_last());
	if (a->lead_err == -EBUSY && ledger_leader(s->ledger, a->leader))
		a->leader[0] = 0;
	if (a->lead_err == -EBUSY && s->ledger->is_unchanged && a->is_same)
		return;
	a->is_same = false;
	a->read_err = ledger_rows_read(s->ledger, &a->rows);
	if (a->read_err)
		(void)snprintf(a->why, sizeof(a->why), "%s", error_last());
}

/* Rows that are not as they should be are never used; rows that cannot be read
 * now leave those that are there, for who only looks. */
static int take_rows(struct cd_server *s, const struct attempt *a)
{
	const char *leader = a->leader[0] ? a->leader : NULL;
	int err = a->read_err;

	if (err && err != -EBADMSG && err != -EPROTONOSUPPORT) {
		cd_core_resign(s->core, a->why);
		return 0;
	}
	if (!err) {
		cd_core_clear(s->core);
		err = ledger_rows_each(&a->rows, cd_core_row, s->core);
	}
	if (!err)
		return a->lead_err ? cd_core_ready(s->core, leader, a->why)
				   : cd_core_lead(s->core, a->term);
	return err;
}

/* Says what is wrong once, not twice a second. */
static void tell(struct cd_server *s, const char *why)
{
	if (strcmp(why, s->told) != 0)
		log_warn("controld", "%s", why);
	(void)snprintf(s->told, sizeof(s->told), "%s", why);
}

/* Makes them the core's, and frees them. */
static int take(struct cd_server *s, struct attempt *a)
{
	int err = take_rows(s, a);

	if (err) {
		/* Nothing of it is to be believed. */
		if (!a->read_err)
			(void)snprintf(a->why, sizeof(a->why), "%s",
				       error_last());
		cd_core_clear(s->core);
		cd_core_resign(s->core, a->why);
	}
	s->is_read = !err && !a->read_err;
	if (err || (a->lead_err && a->lead_err != -EBUSY))
		tell(s, a->why);
	else
		s->told[0] = 0;
	ledger_rows_free(&a->rows);
	settled(s);
	return err ? error_set(err, "%s", a->why) : 0;
}

/* Reads all rows; leads where it may, else only answers. The lock is held, and
 * let go while the ledger is asked: it may take as long as a network does.
 * Meanwhile nothing can be staged, because the core does not lead. */
int cd_serve_load(struct cd_server *s)
{
	struct attempt a = {.is_same = s->is_read};

	pthread_mutex_unlock(&s->lock);
	try_to_lead(s, &a);
	pthread_mutex_lock(&s->lock);
	return a.is_same ? 0 : take(s, &a);
}

/* It is sure to lead for less than the lease, because clocks differ. Where the
 * ledger does not answer that time runs out, and it is sure again with the next
 * answer; only a ledger that has another leader ends its term. */
void cd_serve_keep(struct cd_server *s)
{
	uint64_t sent_ns = clock_mono_ns(), term = cd_core_term(s->core);
	uint64_t lease_ns = s->ledger->lease_ns;
	int err;

	pthread_mutex_unlock(&s->lock);
	err = ledger_keep(s->ledger, term);
	pthread_mutex_lock(&s->lock);
	if (err == -ESTALE)
		cd_core_resign(s->core, error_last());
	else if (err)
		tell(s, error_last());
	else
		cd_core_keep(s->core, lease_ns ? sent_ns + lease_ns / 4 * 3
					       : UINT64_MAX);
	settled(s);
}

static void look_after(struct cd_server *s)
{
	uint64_t now = clock_mono_ms();

	if (!cd_core_leads(s->core) && now - s->tried_ms >= LEAD_AGAIN_MS) {
		(void)!cd_serve_load(s); /* it has told */
		s->tried_ms = clock_mono_ms();
	}
	if (cd_core_leads(s->core) && now - s->kept_ms >= CD_TICK_MS) {
		cd_serve_keep(s);
		s->kept_ms = now;
	}
}

/* ---- commits ------------------------------------------------------------ */

/* Who was answered together asks again at about the same time: what comes first
 * waits for the others and for those that came while the ledger was busy, for
 * half of what a transaction takes at most. Else the first would have one of
 * its own, and the others would wait for that. Where they do not come in that
 * time, a fast disk is kept waiting for nothing: then the next ones begin at
 * once. */
static void gather(struct cd_server *s)
{
	uint64_t end = clock_mono_ns() + s->commit_ns / 2;

	if (s->at_once_count) {
		s->at_once_count--;
		return;
	}
	s->wanted = s->expected_count;
	while (!s->ends && cd_core_waiting(s->core) < s->wanted &&
	       clock_mono_ns() < end)
		cd_server_wait_ns(s, &s->staged, end);
	if (cd_core_waiting(s->core) < s->wanted)
		s->at_once_count = AT_ONCE;
	s->wanted = 0;
}

/* What has failed must not be seen by anybody: the core has it still, and the
 * rows are as they were. A file can be read at once, also where it cannot be
 * written; what else a ledger says is waited for by the next try to lead. */
static void forget_failed(struct cd_server *s)
{
	struct attempt a = {.lead_err = -EAGAIN};

	s->is_read = false;
	s->tried_ms = 0;
	if (s->ledger->lease_ns)
		return;
	(void)snprintf(a.why, sizeof(a.why), "%s", error_last());
	a.read_err = ledger_rows_read(s->ledger, &a.rows);
	if (a.read_err)
		(void)snprintf(a.why, sizeof(a.why), "%s", error_last());
	(void)!take(s, &a); /* it has told */
}

/* The lock is let go for as long as the disk takes. */
void cd_serve_commit(struct cd_server *s)
{
	struct ledger_change change[LEDGER_CHANGES_MAX];
	uint64_t term = cd_core_term(s->core), start_ns;
	unsigned count;
	int err;

	if (!cd_core_leads(s->core) || !cd_core_waiting(s->core))
		return;
	gather(s);
	count = cd_core_batch(s->core, change);
	if (!count)
		return;
	s->flight_ns = start_ns = clock_mono_ns();
	pthread_mutex_unlock(&s->lock);
	err = ledger_commit(s->ledger, term, change, count);
	pthread_mutex_lock(&s->lock);
	s->flight_ns = 0;
	s->commit_ns = u64_min(clock_mono_ns() - start_ns, COMMIT_NS_MAX);
	s->expected_count = cd_core_waiting(s->core);
	if (err)
		log_err("controld", "%s", error_last());
	cd_core_committed(s->core, err);
	if (err)
		forget_failed(s);
	settled(s);
}

/* ---- the thread --------------------------------------------------------- */

static void *run(void *arg)
{
	struct cd_server *s = arg;

	(void)pthread_setname_np(pthread_self(), "aq-ledger");
	pthread_mutex_lock(&s->lock);
	while (!s->ends) {
		look_after(s);
		cd_serve_commit(s);
		if (!s->ends &&
		    (!cd_core_leads(s->core) || !cd_core_waiting(s->core)))
			cd_server_wait(s, &s->staged, CD_TICK_MS);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

int cd_serve_start(struct cd_server *s)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&s->thread, NULL, run, s);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err ? error_set(-err, "no thread for the ledger: %s",
			       strerror(err))
		   : 0;
}

void cd_serve_stop(struct cd_server *s)
{
	pthread_mutex_lock(&s->lock);
	s->ends = true;
	(void)pthread_cond_signal(&s->staged);
	pthread_mutex_unlock(&s->lock);
	(void)pthread_join(s->thread, NULL);
}
