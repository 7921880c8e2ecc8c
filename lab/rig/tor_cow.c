/* SPDX-License-Identifier: Apache-2.0 */
/* What `aquifer engine --switch` does, on a stage. */
#include "tor_cow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "client/verbs_api.h"
#include "pair/pair.h"
#include "wire/wire.h"

enum {
	OWN_QPN = 0x800000,
	OWN_STEP = 32,
	OWN_HOST = 250, /* the last byte of the switch's address */
	READS = 16,
	PATIENCE_MS = 100,
};

static const uint8_t *ip_of(const struct rig_host *h)
{
	return sim_port_addr(sim_host_port(h->sim_host))->ip;
}

/* A queue pair of `far` whose other end is number `own_qpn` of the switch. */
static int far_open(struct rig_session *s, struct rig_host *far,
		    uint32_t own_qpn, struct rig_pair *out)
{
	const struct client_verbs *v = client_verbs_choose();
	struct ibv_qp_init_attr attr = {.send_cq = far->cq,
					.recv_cq = far->cq,
					.qp_type = IBV_QPT_RC,
					.cap = {1, 1, 1, 1, 0}};
	struct pair_end end = {.qpn = own_qpn,
			       .mtu = s->app->rig->mtu,
			       .reads_in = READS,
			       .rnr_timer = PAIR_RNR_TIMER};
	struct rig_pair p = {.near = far, .far = far};
	int err;

	memcpy(end.gid.raw, ip_of(far), 16);
	end.gid.raw[15] = OWN_HOST;
	env_random(sim_host_env(far->sim_host), &p.near_psn,
		   sizeof(p.near_psn));
	p.near_psn &= PAIR_PSN_MASK;
	p.mtu_bytes = 128u << s->app->rig->mtu;
	end.psn = p.near_psn;
	p.far_qp = v->create_qp(far->pd, &attr);
	if (!p.far_qp)
		return -ENOMEM;
	err = pair_init(v->modify_qp, p.far_qp,
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	if (!err)
		err = pair_receive(v->modify_qp, p.far_qp, &end);
	if (err)
		rig_pair_close(&p);
	else
		*out = p;
	return err;
}

static int tell_node(struct rig_session *s, uint32_t i, uint32_t own_qpn)
{
	struct rig *rig = s->app->rig;
	struct rig_host *far = rig->node[i].host;
	struct offload_final final = rig_session_final(s, i);
	char ip[INET6_ADDRSTRLEN], more[64] = "";
	int err;

	if (final.is_known)
		snprintf(more, sizeof(more), " final_epoch=%u final_psn=%u",
			 final.epoch, final.psn);
	if (far->killed) {
		s->node_down[i] = true;
		return rig_tor_tell(rig->tor, "cowbird node id=%u err=%d%s",
				    s->id, EHOSTDOWN, more);
	}
	err = far_open(s, far, own_qpn + 1 + 2 * i, &s->read[i]);
	if (!err)
		err = far_open(s, far, own_qpn + 2 + 2 * i, &s->write[i]);
	if (err)
		return err;
	rig_ip_text(ip_of(far), ip);
	return rig_tor_tell(rig->tor,
			    "cowbird node id=%u ip=%s read_qpn=%u read_psn=%u "
			    "write_qpn=%u write_psn=%u%s",
			    s->id, ip, s->read[i].far_qp->qp_num,
			    s->read[i].near_psn, s->write[i].far_qp->qp_num,
			    s->write[i].near_psn, more);
}

static int tell_region(struct rig_session *s)
{
	struct rig *rig = s->app->rig;
	struct offload_region_config r = {0};
	int err;

	rig_region_describe(rig, &r);
	err = rig_tor_tell(rig->tor,
			   "cowbird region id=%u size=%" PRIu64
			   " stripe_shift=%u",
			   s->id, r.size_bytes, r.stripe_shift);
	for (uint32_t i = 0; i < r.piece_count && !err; i++)
		err = rig_tor_tell(rig->tor,
				   "cowbird piece id=%u node=%u read_rkey=%u "
				   "write_rkey=%u addr=%" PRIu64
				   " size=%" PRIu64,
				   s->id, r.piece[i].node, r.piece[i].read_rkey,
				   r.piece[i].write_rkey, r.piece[i].addr,
				   r.piece[i].size_bytes);
	return err;
}

int rig_cow_open(struct rig_session *s)
{
	struct rig_app *a = s->app;
	struct rig *rig = a->rig;
	uint32_t own_qpn = OWN_QPN + OWN_STEP * s->id;
	char app[INET6_ADDRSTRLEN], own[INET6_ADDRSTRLEN];
	uint8_t own_ip[16];
	int err = far_open(s, a->host, own_qpn, &s->ring);

	if (err)
		return err;
	memcpy(own_ip, ip_of(a->host), 16);
	own_ip[15] = OWN_HOST;
	rig_ip_text(own_ip, own);
	rig_ip_text(ip_of(a->host), app);
	err = rig_tor_tell(rig->tor,
			   "cowbird session id=%u app=%s qpn=%u psn=%u "
			   "own_ip=%s own_qpn=%u mtu=%u addr=%" PRIu64
			   " bytes=%" PRIu64 " rkey=%u epoch=%u patience_ms=%d",
			   s->id, app, s->ring.far_qp->qp_num, s->ring.near_psn,
			   own, own_qpn, s->ring.mtu_bytes,
			   (uint64_t)(uintptr_t)a->memory, a->map.total_bytes,
			   a->mr->rkey, s->epoch, PATIENCE_MS);
	for (uint32_t i = 0; i < rig->node_count && !err; i++)
		err = tell_node(s, i, own_qpn);
	if (!err)
		err = tell_region(s);
	if (!err)
		err = rig_tor_tell(rig->tor, "cowbird start id=%u", s->id);
	return err;
}

void rig_cow_close(struct rig_session *s)
{
	/* A switch that was restarted does not know it. */
	(void)!rig_tor_tell(s->app->rig->tor, "cowbird end id=%u", s->id);
}

int rig_cow_err(const struct rig_session *s)
{
	char *text = NULL, id[32];
	struct json_out out;
	const char *at;
	size_t len = 0;
	int err = -ECONNRESET; /* nobody knows it */
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return -ENOMEM;
	json_out_init(&out, f);
	json_out_object(&out, NULL);
	if (tor_control(rig_tor_get(s->app->rig->tor), "cowbird show", &out))
		err = -ENOENT;
	json_out_close(&out);
	if (json_out_end(&out) == 0 && fclose(f) == 0) {
		snprintf(id, sizeof(id), "\"id\":%u,", s->id);
		at = strstr(text, id);
		at = at ? strstr(at, "\"err\":") : NULL;
		if (at)
			err = -atoi(at + strlen("\"err\":"));
	}
	free(text);
	return err;
}
