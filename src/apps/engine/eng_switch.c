/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that a switch serves: this process has no data path. It gives out
 * the numbers of the switch's ends, and when the application has had the nodes
 * connect theirs, it tells the switch's program cowbird all of it. See
 * switch/cow.h for what that does.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/log.h"
#include "eng_priv.h"
#include "pair/pair.h"

enum {
	/* The switch's ends: one block of numbers for each session, apart from
	 * those that memory nodes give to its program swordbox. */
	OWN_QPN = 0xc00000,
	OWN_QPN_RANDOM = 0x3fffe0,
	OWN_QPN_STEP = 32,
	READS_MAX = 128,
	BATCH_MAX = 1024,
	PATIENCE_MAX_MS = 1000000,
	MORE_BYTES = 96,
};

static enum ibv_mtu mtu_min(enum ibv_mtu a, enum ibv_mtu b)
{
	return a < b ? a : b;
}

static const char *ip_text(const union ibv_gid *gid, char out[INET6_ADDRSTRLEN])
{
	return inet_ntop(AF_INET6, gid->raw, out, INET6_ADDRSTRLEN);
}

int eng_switch_open(struct eng *eng, const struct daemon *d)
{
	const struct eng_options *o = d->self;
	struct eng_switch *w;
	json_t *hello = NULL;
	int err;

	if (eng->has_auth)
		return error_set(-EOPNOTSUPP,
				 "nic.auth = psk: a switch makes packets whose "
				 "codes it cannot make; use an engine without "
				 "--switch");
	if (o->memory_bytes || o->probe_max_us || o->threads > 1 ||
	    o->gather_off)
		return error_set(
			-EINVAL,
			"--memory, --probe-max-us, --threads and --gather are "
			"for an engine without --switch; the switch has "
			"options of the program cowbird");
	w = eng->at_switch = calloc(1, sizeof(*w));
	if (!w)
		return error_set(-ENOMEM, "no memory for an engine");
	atomic_init(&w->ctl.is_away, false);
	(void)snprintf(w->name, sizeof(w->name), "%s", o->switch_name);
	w->mtu = pair_mtu((uint64_t)config_int(d->config, "nic", "mtu"));
	err = ctl_switch_path(d->rundir, w->name, w->ctl.path);
	if (!err)
		err = ctl_switch_ask(&w->ctl, "hello", &hello);
	if (err == -ENOENT || err == -ECONNREFUSED)
		err = error_set(err,
				"no switch '%s' runs in rack %s; 'aquifer "
				"switch --name %s --program cowbird' starts "
				"one",
				w->name, d->rack, w->name);
	if (!err && !ctl_switch_run(hello))
		err = error_set(-EBADMSG, "the switch does not say who it is");
	if (!err && !ctl_switch_program(hello, "cowbird"))
		err = error_set(-EOPNOTSUPP,
				"switch %s does not have the program cowbird; "
				"its option is --program cowbird",
				w->name);
	/* That follows whole connections, and of these it would see half. */
	if (!err && ctl_switch_program(hello, "swordbox"))
		err = error_set(-EOPNOTSUPP,
				"switch %s runs swordbox, too, which does not "
				"go with cowbird in one switch",
				w->name);
	if (!err)
		(void)snprintf(w->run, sizeof(w->run), "%s",
			       ctl_switch_run(hello));
	json_decref(hello);
	return err;
}

uint32_t eng_switch_free_qpn(const struct eng *eng, uint32_t wish)
{
	uint32_t qpn = OWN_QPN | (wish & OWN_QPN_RANDOM);

	/* Each turn passes one of them at least; there are more numbers. */
	for (unsigned i = 0; i < ENG_SESSION_MAX; i++) {
		unsigned k = 0;

		while (k < ENG_SESSION_MAX &&
		       (!eng->session[k] || eng->session[k]->ring.qpn != qpn))
			k++;
		if (k == ENG_SESSION_MAX)
			break;
		qpn = OWN_QPN | ((qpn + OWN_QPN_STEP) & OWN_QPN_RANDOM);
	}
	return qpn;
}

int eng_switch_session_open(struct eng *eng, struct eng_session *s)
{
	uint32_t number[2];
	int err = 0;

	s->application.mtu = mtu_min(s->application.mtu, eng->at_switch->mtu);
	if (s->application.mtu < IBV_MTU_512)
		return error_set(-EINVAL,
				 "an engine in a switch needs an MTU of 512 "
				 "bytes at least");
	if (getrandom(number, sizeof(number), 0) != sizeof(number))
		return error_set(-EIO, "the kernel gives no random numbers");
	s->id = number[0];
	s->ring.qpn = eng_switch_free_qpn(eng, number[1]);
	err = pair_psn(&s->ring.psn);
	for (unsigned i = 0; i < 2 * s->node_count && !err; i++) {
		struct eng_qp *q = &s->node[i / 2][i % 2];

		q->qpn = s->ring.qpn + 1 + i;
		err = pair_psn(&q->psn);
	}
	return err ? error_set(err, "the kernel gives no random numbers") : 0;
}

/* ---- what the switch is told --------------------------------------------- */

static uint32_t reads_of(const struct eng_far *far)
{
	return u32_max(1, u32_min(far->rd_atomic, READS_MAX));
}

static int tell_session(struct eng *eng, const struct eng_session *s,
			enum ibv_mtu mtu)
{
	const struct offload_session_config *c = &s->config;
	const struct eng_far *a = &s->application;
	char app[INET6_ADDRSTRLEN], own[INET6_ADDRSTRLEN], more[MORE_BYTES];
	uint64_t batch = c->batch ? c->batch : eng->batch;
	uint64_t flush_us = c->flush_ns ? c->flush_ns / 1000 : eng->flush_us;
	int n = 0;

	more[0] = '\0';
	if (batch)
		n += snprintf(more + n, sizeof(more) - (size_t)n,
			      " batch=%" PRIu64, u64_min(batch, BATCH_MAX));
	if (flush_us)
		n += snprintf(more + n, sizeof(more) - (size_t)n,
			      " flush_us=%" PRIu64, flush_us);
	if (s->within_ms)
		(void)snprintf(more + n, sizeof(more) - (size_t)n,
			       " patience_ms=%" PRIu64,
			       u64_min(s->within_ms, PATIENCE_MAX_MS));
	(void)inet_ntop(AF_INET6, ctl_switch_ip(a->gid.raw), own, sizeof(own));
	return ctl_switch_tell(
		&eng->at_switch->ctl,
		"tell cowbird session id=%u owner=%s app=%s qpn=%u psn=%u "
		"own_ip=%s own_qpn=%u mtu=%u reads=%u addr=%" PRIu64
		" bytes=%" PRIu64 " rkey=%u epoch=%u%s",
		s->id, eng->name, ip_text(&a->gid, app), a->qpn, s->ring.psn,
		own, s->ring.qpn, 128u << mtu, reads_of(a), c->ring_addr,
		c->ring_bytes, c->ring_rkey, c->epoch, more);
}

static int tell_node(struct eng *eng, const struct eng_session *s, unsigned i,
		     const struct eng_far far[2])
{
	const struct offload_node_config *n = &s->config.node[i];
	char ip[INET6_ADDRSTRLEN], more[MORE_BYTES] = "";

	if (n->final.is_known)
		(void)snprintf(more, sizeof(more),
			       " final_epoch=%u final_psn=%u", n->final.epoch,
			       n->final.psn);
	if (n->err)
		return ctl_switch_tell(&eng->at_switch->ctl,
				       "tell cowbird node id=%u err=%d%s",
				       s->id, -n->err, more);
	if (memcmp(ctl_switch_ip(far[0].gid.raw),
		   ctl_switch_ip(s->application.gid.raw), 16) != 0)
		return error_set(-EINVAL,
				 "the application and a memory node have "
				 "addresses of different kinds (IPv4, IPv6); "
				 "the switch's ends have one");
	return ctl_switch_tell(
		&eng->at_switch->ctl,
		"tell cowbird node id=%u ip=%s read_qpn=%u read_psn=%u "
		"write_qpn=%u write_psn=%u reads=%u%s",
		s->id, ip_text(&far[0].gid, ip), far[0].qpn, s->node[i][0].psn,
		far[1].qpn, s->node[i][1].psn, reads_of(&far[0]), more);
}

static int tell_region(struct eng *eng, const struct eng_session *s,
		       const struct offload_region_config *r)
{
	char more[MORE_BYTES];
	int n = 0, err;

	more[0] = '\0';
	if (r->stripe_shift)
		n += snprintf(more + n, sizeof(more) - (size_t)n,
			      " stripe_shift=%u", r->stripe_shift);
	if (r->err)
		(void)snprintf(more + n, sizeof(more) - (size_t)n, " err=%d",
			       -r->err);
	err = ctl_switch_tell(&eng->at_switch->ctl,
			      "tell cowbird region id=%u size=%" PRIu64 "%s%s",
			      s->id, r->size_bytes,
			      r->is_read_only ? " read_only" : "", more);
	for (uint32_t i = 0; i < r->piece_count && !err; i++)
		err = ctl_switch_tell(
			&eng->at_switch->ctl,
			"tell cowbird piece id=%u node=%u read_rkey=%u "
			"write_rkey=%u addr=%" PRIu64 " size=%" PRIu64,
			s->id, r->piece[i].node, r->piece[i].read_rkey,
			r->piece[i].write_rkey, r->piece[i].addr,
			r->piece[i].size_bytes);
	return err;
}

int eng_switch_session_start(struct eng *eng, struct eng_session *s,
			     struct eng_far far[OFFLOAD_NODES_MAX][2])
{
	enum ibv_mtu mtu = s->application.mtu;
	int err;

	for (unsigned i = 0; i < s->node_count; i++)
		if (!s->config.node[i].err)
			mtu = mtu_min(mtu,
				      mtu_min(far[i][0].mtu, far[i][1].mtu));
	if (mtu < IBV_MTU_512)
		return error_set(-EINVAL,
				 "an engine in a switch needs an MTU of 512 "
				 "bytes at least");
	s->is_told = true;
	err = tell_session(eng, s, mtu);
	for (unsigned i = 0; i < s->node_count && !err; i++)
		err = tell_node(eng, s, i, far[i]);
	for (unsigned i = 0; i < s->config.region_count && !err; i++)
		err = tell_region(eng, s, &s->config.region[i]);
	if (!err)
		err = ctl_switch_tell(&eng->at_switch->ctl,
				      "tell cowbird start id=%u", s->id);
	s->told_ns = client_clock_now_ns(eng->clock);
	return err;
}

void eng_switch_session_end(struct eng *eng, struct eng_session *s)
{
	int err = ctl_switch_tell(&eng->at_switch->ctl,
				  "tell cowbird end id=%u", s->id);

	/* One that it knows for longer than us is ended as a stray. */
	if (err)
		log_debug("engine", "session %u at the switch: %s", s->id,
			  error_last());
	s->is_told = false;
}
