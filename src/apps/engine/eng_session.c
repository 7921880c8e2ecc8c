/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: opened with the application's end of the ring queue pair, started
 * once the application has had the memory nodes connect the rest, ended by the
 * application's word, its silence, or its death.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/counter.h"
#include "base/error.h"
#include "base/log.h"
#include "eng_priv.h"

int eng_session_find(struct eng *eng, const char *id, struct eng_session **out)
{
	struct eng_session *s;
	uint64_t nonce;
	uint32_t slot;
	int err = ctl_bond_parse("a session", id, &nonce, &slot);

	if (err)
		return err;
	s = slot < ENG_SESSION_MAX ? eng->session[slot] : NULL;
	if (!s || s->nonce != nonce)
		return error_set(-ESTALE,
				 "there is no session %s, or no longer; attach "
				 "again",
				 id);
	*out = s;
	return 0;
}

static void free_session(struct eng_session *s)
{
	eng_qp_close(&s->ring);
	for (unsigned i = 0; i < OFFLOAD_NODES_MAX; i++) {
		eng_qp_close(&s->node[i][0]);
		eng_qp_close(&s->node[i][1]);
	}
	/* After its queue pairs, so that nothing writes to its memory. */
	if (s->core)
		offload_session_remove(s->core);
	free(s);
}

/* What both ports can and the way has room for. */
static enum ibv_mtu path_mtu(const struct eng *eng, const struct eng_far *far)
{
	enum ibv_mtu mtu;

	if (aqdv_query_path_mtu(eng->context, &far->gid, &mtu))
		mtu = eng->mtu; /* an adapter, which does not know */
	return far->mtu < mtu ? far->mtu : mtu;
}

static int open_qps(struct eng *eng, struct eng_session *s)
{
	struct ibv_cq *cq = s->worker->cq;
	int err = eng_qp_open(eng, cq, OFFLOAD_RING_DEPTH, &s->ring);

	for (unsigned i = 0; i < s->node_count && !err; i++) {
		err = eng_qp_open(eng, cq, OFFLOAD_NODE_DEPTH, &s->node[i][0]);
		if (!err)
			err = eng_qp_open(eng, cq, OFFLOAD_NODE_DEPTH,
					  &s->node[i][1]);
	}
	return err;
}

int eng_session_open(struct eng *eng, struct eng_session *wish,
		     struct eng_session **out)
{
	struct eng_session *s;
	uint32_t slot = 0;
	int err;

	if (eng->session_count >= eng->session_max)
		return error_set(-ENOSPC,
				 "engine %s is full: it serves %u application "
				 "threads (--sessions)",
				 eng->name, eng->session_max);
	while (eng->session[slot])
		slot++;
	if (eng->has_auth && !wish->can_auth)
		return error_set(-EPERM,
				 "this engine authenticates packets (nic.auth "
				 "= psk), and this application cannot");
	s = malloc(sizeof(*s));
	if (!s)
		return error_set(-ENOMEM, "no memory for a session");
	*s = *wish;
	s->slot = slot;
	s->opened_ns = s->seen_ns = client_clock_now_ns(eng->clock);
	if (!eng->at_switch) {
		s->worker = eng_worker_choose(eng);
		s->application.mtu = path_mtu(eng, &s->application);
	}
	s->application.has_auth = eng->has_auth;
	err = getrandom(&s->nonce, sizeof(s->nonce), 0) == sizeof(s->nonce) &&
			      getrandom(s->application.auth_key,
					sizeof(s->application.auth_key),
					0) == sizeof(s->application.auth_key)
		      ? 0
		      : error_set(-EIO, "the kernel gives no random numbers");
	if (!err)
		err = eng->at_switch ? eng_switch_session_open(eng, s)
				     : open_qps(eng, s);
	if (err) {
		free_session(s);
		return err;
	}
	eng->session[slot] = s;
	eng->session_count++;
	if (s->worker)
		s->worker->session_count++;
	*out = s;
	return 0;
}

/* Has the engine of this process serve it. */
static int start_core(struct eng *eng, struct eng_session *s)
{
	struct offload_session_config *c = &s->config;
	int err = eng_qp_connect(eng, &s->ring, &s->application, 0);

	explicit_bzero(s->application.auth_key,
		       sizeof(s->application.auth_key));
	c->ring_qp = s->ring.qp;
	for (unsigned i = 0; i < s->node_count; i++) {
		c->node[i].read_qp = s->node[i][0].qp;
		c->node[i].write_qp = s->node[i][1].qp;
		c->node[i].write_psn = s->node[i][1].psn;
	}
	return err ? err : offload_session_add(s->worker->core, c, &s->core);
}

int eng_session_start(struct eng *eng, struct eng_session *s)
{
	const struct offload_session_config *c = &s->config;
	int err = eng->at_switch ? 0 : start_core(eng, s);

	if (err)
		return err;
	s->is_started = true;
	eng->sessions_started++;
	if (s->worker)
		pthread_cond_signal(&s->worker->wake);
	*eng->sessions = eng->session_count;
	log_debug("engine", "session %u of %s starts: %u nodes, %u regions",
		  s->slot, s->client, c->node_count, c->region_count);
	return 0;
}

int eng_session_err(const struct eng_session *s)
{
	return s->core ? offload_session_err(s->core) : s->err;
}

unsigned eng_session_pending(const struct eng_session *s)
{
	return s->core ? offload_session_pending(s->core) : s->pending;
}

void eng_session_end(struct eng *eng, struct eng_session *s)
{
	if (s->is_told)
		eng_switch_session_end(eng, s);
	eng->session[s->slot] = NULL;
	eng->session_count--;
	if (s->worker)
		s->worker->session_count--;
	*eng->sessions = eng->session_count;
	free_session(s);
}

static const char *why_end(const struct eng *eng, const struct eng_session *s,
			   uint64_t now_ns)
{
	const uint64_t patience_ns =
		ENG_HEARTBEAT_MS * ENG_HEARTBEAT_MISSES * 1000000ull;

	if (now_ns - u64_max(s->seen_ns, eng->awake.since_ns) > patience_ns)
		return "is silent";
	if (!s->is_started)
		return now_ns - s->opened_ns > ENG_START_MS * 1000000ull
			       ? "never started"
			       : NULL;
	return eng_session_err(s) == -ECONNRESET ? "is gone" : NULL;
}

/* The NIC is patient with a process of this host that does not run; the
 * application may be less so. */
static void look_for_silent_nodes(const struct eng *eng, struct eng_session *s,
				  uint64_t now_ns)
{
	if (s->core && s->within_ms && !offload_session_err(s->core) &&
	    u64_min(offload_session_stalled_ns(s->core),
		    now_ns - eng->awake.since_ns) > s->within_ms * 1000000)
		offload_session_give_up(s->core);
}

void eng_tick(struct eng *eng)
{
	uint64_t now_ns = client_clock_now_ns(eng->clock);

	awake_look(&eng->awake, now_ns, ENG_PAUSE_MS * 1000000ull);
	for (unsigned i = 0; i < ENG_SESSION_MAX; i++) {
		struct eng_session *s = eng->session[i];
		const char *why;

		if (s)
			look_for_silent_nodes(eng, s, now_ns);
		why = s ? why_end(eng, s, now_ns) : NULL;
		if (!why)
			continue;
		log_info("engine", "session %u ends: %s %s", i, s->client, why);
		eng->sessions_lost++;
		eng_session_end(eng, s);
	}
}
