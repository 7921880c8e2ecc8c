/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine that shares memory, in one file: HTTP to the memory node, one talk
 * and one lane to the switch, and sixteen pages without processes. It does what
 * lines on its standard input say, one line of answer each, and answers INVALs
 * and beats by itself.
 *
 *   shared_client SOCKET TOKEN NAME VA
 *
 *   join, again         become a member; connect again in another term, give
 *                       back what is dirty and say CLEAN
 *   get PAGE r|w        "got BYTE", or "refused WHY"
 *   set PAGE BYTE       a store: the page is dirty
 *   give PAGE           give it back
 *   term                "term N" of the last beat, or "expelled"
 *   leave
 */
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hex.h"
#include "client/client.h"
#include "coherence/record.h"
#include "pair/pair.h"

enum {
	PAGES = 16,
	RECVS = 64,
	BEAT_MS = 300,
	ASK_MS = 5000,
	WAIT_MS = 60000,
	PAGE = COHERENCE_PAGE_BYTES,
	TIMEOUT = 18, /* 1 s */
	EXPELLED = UINT32_MAX,
};

enum work {
	WORK_GET = 1,
	WORK_GIVE,
	WORK_SAY,
	WORK_RECV, /* and which */
};

struct machine {
	struct client_node node;
	const char *token, *name;
	struct client_http *http;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *talk, *lane;
	uint8_t *buf;	  /* a page to get, one to give, records */
	uint64_t va;	  /* of page 0 */
	uint32_t keys[3]; /* give, read, write */
	uint32_t serial;  /* of the last get */
	uint32_t term;	  /* that it is connected in */
	uint32_t done;	  /* bits of enum work */
	uint32_t refused; /* why the last get was; 0: it was not */
	bool has_inval;
	struct coh_inval inval; /* that waits for a get */
	struct {
		enum coh_right right;
		bool is_dirty;
		uint8_t byte;
	} page[PAGES];
	/* The beats' thread. */
	char id[64];
	atomic_uint beat_term;
};

static void die(const char *what)
{
	fprintf(stderr, "shared_client: %s: %s\n", what, error_last());
	_exit(1);
}

static void need(int ok, const char *what)
{
	if (!ok)
		die(what);
}

static int ask(const struct machine *m, struct client_http *http,
	       const char *method, const char *path, json_t *body,
	       json_t **reply)
{
	struct client_caller c = {.http = http, .token = m->token};

	*reply = NULL;
	return client_call(&c, &m->node, method, path, body, ASK_MS, 1 << 16,
			   reply);
}

static void *beat(void *arg)
{
	struct machine *m = arg;
	struct client_http *http;
	char path[128];

	need(client_http_create(&http) == 0, "http");
	snprintf(path, sizeof(path), "/v1/shared/members/%s/beat", m->id);
	for (;;) {
		json_t *reply;
		uint64_t term;
		int err = ask(m, http, "POST", path, json_object(), &reply);

		if (!err &&
		    client_json_u64(reply, "term", UINT32_MAX - 1, &term) == 0)
			atomic_store(&m->beat_term, (unsigned)term);
		if (err == -ESTALE)
			atomic_store(&m->beat_term, EXPELLED);
		json_decref(reply);
		usleep(BEAT_MS * 1000);
	}
	return NULL;
}

/* ---- connections ----------------------------------------------------------
 */

static void open_nic(struct machine *m)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	need(list && list[0], "no device");
	m->context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	need(m->context != NULL, "ibv_open_device");
	m->pd = ibv_alloc_pd(m->context);
	m->cq = ibv_create_cq(m->context, 4 * RECVS, NULL, NULL, 0);
	m->buf = calloc(3 + RECVS, PAGE);
	need(m->pd && m->cq && m->buf, "verbs objects");
	m->mr = ibv_reg_mr(m->pd, m->buf, (3 + RECVS) * PAGE,
			   IBV_ACCESS_LOCAL_WRITE);
	need(m->mr != NULL, "ibv_reg_mr");
}

static struct ibv_qp *make_qp(struct machine *m)
{
	struct ibv_qp_init_attr init = {.send_cq = m->cq,
					.recv_cq = m->cq,
					.sq_sig_all = 1,
					.cap = {16, RECVS, 1, 1, 0},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = ibv_create_qp(m->pd, &init);

	need(qp && pair_init(ibv_modify_qp, qp, 0) == 0, "queue pair");
	return qp;
}

static struct ibv_sge part(struct machine *m, unsigned page, uint32_t len)
{
	return (struct ibv_sge){(uintptr_t)m->buf + page * PAGE, len,
				m->mr->lkey};
}

static void post_recv(struct machine *m, unsigned i)
{
	struct ibv_sge sge = part(m, 3 + i, COHERENCE_INVAL_BYTES);
	struct ibv_recv_wr wr = {.wr_id = WORK_RECV + i,
				 .sg_list = &sge,
				 .num_sge = 1},
			   *bad;

	need(ibv_post_recv(m->talk, &wr, &bad) == 0, "receive");
}

static uint64_t number(const json_t *j, const char *name)
{
	uint64_t v;

	need(client_json_u64(j, name, UINT32_MAX, &v) == 0, name);
	return v;
}

static void connect_qp(struct ibv_qp *qp, const json_t *end, const json_t *row,
		       uint32_t psn, bool is_talk)
{
	uint8_t index = 0;
	union ibv_gid own;
	struct pair_end e = {.qpn = (uint32_t)number(row, "qpn"),
			     .psn = is_talk ? (uint32_t)number(row, "psn") : 0,
			     .own_psn = psn,
			     .mtu = pair_mtu(number(end, "mtu")),
			     .reads_in = 1,
			     .reads_out = 1,
			     .timeout = TIMEOUT,
			     .retries = PAIR_RETRIES,
			     .rnr_timer = PAIR_RNR_TIMER};

	need(hex_read(json_string_value(json_object_get(end, "gid")), e.gid.raw,
		      16),
	     "gid");
	need(pair_gid(qp->context, &e.gid, &index, &own) == 0, "address");
	e.gid_index = index;
	need(pair_connect(ibv_modify_qp, qp, &e) == 0, "connect");
}

/* Joins, or connects again; `path` says which. */
static void connect_all(struct machine *m, const char *path, bool joins)
{
	uint32_t psn[2];
	uint8_t index;
	union ibv_gid own;
	char gid[33];
	json_t *body, *end;
	const json_t *keys;
	int err;

	if (m->talk)
		(void)ibv_destroy_qp(m->talk);
	if (m->lane)
		(void)ibv_destroy_qp(m->lane);
	m->talk = make_qp(m);
	m->lane = make_qp(m);
	m->serial = 0;
	m->has_inval = false;
	for (unsigned i = 0; i < RECVS; i++)
		post_recv(m, i);
	need(pair_psn(&psn[0]) == 0 && pair_psn(&psn[1]) == 0, "psn");
	need(pair_gid(m->context, NULL, &index, &own) == 0, "own address");
	hex_write(gid, own.raw, 16);
	body = json_pack("{s:s, s:s, s:i, s:{s:i, s:i}, s:[{s:i, s:i}]}",
			 "proto", "1.0", "gid", gid, "mtu", 4096, "talk", "qpn",
			 (int)m->talk->qp_num, "psn", (int)psn[0], "lanes",
			 "qpn", (int)m->lane->qp_num, "psn", (int)psn[1]);
	if (joins)
		(void)json_object_set_new(body, "name", json_string(m->name));
	err = ask(m, m->http, "POST", path, body, &end);
	if (err) {
		printf("error %s\n", error_last());
		return;
	}
	keys = json_object_get(end, "keys");
	m->keys[COH_NONE] = (uint32_t)number(keys, "give");
	m->keys[COH_READ] = (uint32_t)number(keys, "read");
	m->keys[COH_WRITE] = (uint32_t)number(keys, "write");
	m->term = (uint32_t)number(end, "term");
	snprintf(m->id, sizeof(m->id), "%s",
		 json_string_value(json_object_get(end, "member")));
	connect_qp(m->talk, end, json_object_get(end, "talk"), psn[0], true);
	connect_qp(m->lane, end,
		   json_array_get(json_object_get(end, "lanes"), 0), psn[1],
		   false);
	atomic_store(&m->beat_term, m->term);
	json_decref(end);
}

/* ---- what it says and hears -----------------------------------------------
 */

static void pump(struct machine *m);

static void wait_for(struct machine *m, enum work work, const char *what)
{
	uint64_t end_ms = clock_mono_ms() + WAIT_MS;

	while (!(m->done & 1u << work)) {
		pump(m);
		need(clock_mono_ms() < end_ms, what);
		usleep(200);
	}
	m->done &= ~(1u << work);
}

static void say(struct machine *m, const struct coh_record *r)
{
	struct ibv_sge sge = part(m, 2, coh_record_build(r, m->buf + 2 * PAGE));
	struct ibv_send_wr wr = {.wr_id = WORK_SAY,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND},
			   *bad;

	need(ibv_post_send(m->talk, &wr, &bad) == 0, "send");
	wait_for(m, WORK_SAY, "a record");
}

static void give(struct machine *m, unsigned i)
{
	struct ibv_sge sge = part(m, 1, PAGE);
	struct ibv_send_wr wr = {.wr_id = WORK_GIVE,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .wr.rdma = {m->va + (uint64_t)i * PAGE,
					     m->keys[COH_NONE]}},
			   *bad;

	memset(m->buf + PAGE, m->page[i].byte, PAGE);
	need(ibv_post_send(m->talk, &wr, &bad) == 0, "give");
	wait_for(m, WORK_GIVE, "a give-back");
	m->page[i].is_dirty = false;
}

static void keep(struct machine *m, unsigned i, enum coh_right right)
{
	if (m->page[i].is_dirty)
		give(m, i);
	if (m->page[i].right > right)
		m->page[i].right = right;
}

static void obey(struct machine *m, const struct coh_inval *inval)
{
	uint64_t first = m->va >> COHERENCE_PAGE_SHIFT;

	for (unsigned i = 0; i < PAGES; i++)
		if (coh_range_has(&inval->range, first + i))
			keep(m, i, inval->to);
	say(m, &(struct coh_record){
		       .kind = COHERENCE_FIN,
		       .fin = {inval->range, inval->term, inval->seq}});
}

static void hear(struct machine *m, const struct ibv_wc *wc)
{
	unsigned i = (unsigned)(wc->wr_id - WORK_RECV);
	struct coh_record r;

	need(coh_record_parse(m->buf + (3 + i) * PAGE, wc->byte_len, &r) == 0,
	     "a record");
	post_recv(m, i);
	if (r.kind == COHERENCE_LOST && r.serial == m->serial) {
		m->refused = r.why;
	} else if (r.kind == COHERENCE_INVAL) {
		need(!m->has_inval, "two INVALs");
		m->inval = r.inval;
		m->has_inval = true;
	}
}

static void pump(struct machine *m)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(m->cq, 1, &wc) == 1) {
		/* Of queue pairs of a former term, or of one that is over. */
		if (wc.status != IBV_WC_SUCCESS)
			continue;
		if (wc.wr_id >= WORK_RECV)
			hear(m, &wc);
		else
			m->done |= 1u << wc.wr_id;
	}
}

/* When no get is under way, all that were granted are here. */
static void rest(struct machine *m)
{
	pump(m);
	if (!m->has_inval)
		return;
	m->has_inval = false;
	obey(m, &m->inval);
}

/* ---- what it is told ------------------------------------------------------
 */

static void get(struct machine *m, unsigned i, enum coh_right right)
{
	struct ibv_sge sge = part(m, 0, PAGE);
	struct ibv_send_wr wr = {.wr_id = WORK_GET,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_READ,
				 .wr.rdma = {m->va + (uint64_t)i * PAGE,
					     m->keys[right]}},
			   *bad;
	uint64_t end_ms = clock_mono_ms() + WAIT_MS;

	m->serial++;
	m->refused = 0;
	need(ibv_post_send(m->lane, &wr, &bad) == 0, "get");
	while (!(m->done & 1u << WORK_GET)) {
		pump(m);
		/* One that does not name this get must not wait for it. */
		if (m->has_inval && m->inval.granted[0] != m->serial)
			rest(m);
		need(clock_mono_ms() < end_ms, "a get");
		usleep(200);
	}
	m->done &= ~(1u << WORK_GET);
	if (m->refused) {
		printf("refused %s\n", m->refused == COHERENCE_WHY_LOST ? "lost"
				       : m->refused == COHERENCE_WHY_RIGHT
					       ? "right"
					       : "node");
		return;
	}
	for (unsigned k = 1; k < PAGE; k++)
		need(m->buf[k] == m->buf[0], "a page of one byte");
	m->page[i].right = right;
	m->page[i].byte = m->buf[0];
	printf("got %u\n", m->buf[0]);
}

static void again(struct machine *m)
{
	char path[128];

	snprintf(path, sizeof(path), "/v1/shared/members/%s/connect", m->id);
	connect_all(m, path, false);
	for (unsigned i = 0; i < PAGES; i++)
		keep(m, i, COH_NONE);
	say(m, &(struct coh_record){.kind = COHERENCE_CLEAN, .term = m->term});
	printf("again %u\n", m->term);
}

static void join(struct machine *m)
{
	pthread_t thread;
	bool is_first = !m->id[0];

	memset(m->page, 0, sizeof(m->page));
	connect_all(m, "/v1/shared/members", true);
	if (m->id[0] && is_first)
		need(pthread_create(&thread, NULL, beat, m) == 0, "thread");
	if (m->id[0])
		printf("joined %u\n", m->term);
}

static void leave(struct machine *m)
{
	json_t *reply;
	char path[128];

	for (unsigned i = 0; i < PAGES; i++)
		keep(m, i, COH_NONE);
	snprintf(path, sizeof(path), "/v1/shared/members/%s", m->id);
	need(ask(m, m->http, "DELETE", path, NULL, &reply) == 0, "leave");
	printf("left\n");
}

static void obey_line(struct machine *m, const char *line)
{
	unsigned page = 0, byte = 0;
	char right = 0;

	if (strcmp(line, "join") == 0)
		join(m);
	else if (strcmp(line, "again") == 0)
		again(m);
	else if (strcmp(line, "leave") == 0)
		leave(m);
	else if (strcmp(line, "term") == 0 &&
		 atomic_load(&m->beat_term) == EXPELLED)
		printf("expelled\n");
	else if (strcmp(line, "term") == 0)
		printf("term %u\n", atomic_load(&m->beat_term));
	else if (sscanf(line, "get %u %c", &page, &right) == 2 && page < PAGES)
		get(m, page, right == 'w' ? COH_WRITE : COH_READ);
	else if (sscanf(line, "set %u %u", &page, &byte) == 2 && page < PAGES &&
		 m->page[page].right == COH_WRITE) {
		m->page[page].byte = (uint8_t)byte;
		m->page[page].is_dirty = true;
		printf("set\n");
	} else if (sscanf(line, "give %u", &page) == 1 && page < PAGES) {
		give(m, page);
		printf("given\n");
	} else {
		printf("error what is '%s'\n", line);
	}
}

int main(int argc, char **argv)
{
	struct machine m = {0};
	char line[128];
	size_t len = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	need(argc == 5, "SOCKET TOKEN NAME VA");
	snprintf(m.node.name, sizeof(m.node.name), "m0");
	snprintf(m.node.address, sizeof(m.node.address), "unix:%s", argv[1]);
	m.token = argv[2];
	m.name = argv[3];
	m.va = strtoull(argv[4], NULL, 0);
	need(client_http_create(&m.http) == 0, "http");
	open_nic(&m);
	for (;;) {
		struct pollfd p = {.fd = 0, .events = POLLIN};

		if (m.talk)
			rest(&m);
		if (poll(&p, 1, 1) <= 0)
			continue;
		if (read(0, line + len, 1) != 1)
			return 0;
		if (line[len] == '\n') {
			line[len] = '\0';
			len = 0;
			obey_line(&m, line);
		} else if (++len == sizeof(line) - 1) {
			die("a line");
		}
	}
}
