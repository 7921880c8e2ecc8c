/* SPDX-License-Identifier: Apache-2.0 */
/* Two connections face to face on a virtual clock: setup, refusal, patience,
 * loss of every single message, both ends at once, a peer that dies. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cm/cm_conn.h"
#include "cm/cm_limits.h"

enum {
	QUEUE = 64,
	ACK_TIMEOUT = 18,
};

struct end {
	struct cm_conn conn;
	struct end *peer;
	struct world *world;
	uint64_t deadline_ns;
	unsigned happened[CM_RESTED + 1];
	bool mute; /* gives no sign of life */
	unsigned probes;
	int status;
};

struct world {
	struct end a, b; /* a asks */
	bool b_exists;
	struct {
		struct end *to;
		struct wire_cm_msg msg;
	} queue[QUEUE];
	unsigned head, tail;
	unsigned sent;
	unsigned lose;	    /* the number of the message that is lost */
	unsigned lose_kind; /* every message of this kind is lost */
	bool auto_accept;
	uint64_t now_ns;
};

static struct end *of(struct cm_conn *c)
{
	return container_of(c, struct end, conn);
}

static void send_out(struct cm_conn *c, const struct wire_cm_msg *msg)
{
	struct world *w = of(c)->world;

	w->sent++;
	if (w->sent == w->lose || msg->kind == w->lose_kind)
		return;
	assert_true(w->tail - w->head < QUEUE);
	w->queue[w->tail % QUEUE].to = of(c)->peer;
	w->queue[w->tail++ % QUEUE].msg = *msg;
}

static void happened(struct cm_conn *c, enum cm_happening what, int status,
		     const struct wire_cm_msg *msg)
{
	of(c)->happened[what]++;
	of(c)->status = status;
	if (what == CM_RESPONSE && of(c)->world->auto_accept)
		assert_int_equal(cm_conn_establish(c, of(c)->world->now_ns), 0);
	if (what == CM_DISCONNECTED && c->state == CM_DREQ_RCVD)
		assert_int_equal(cm_conn_disconnect(c, of(c)->world->now_ns),
				 0);
}

static bool is_silent(struct cm_conn *c)
{
	of(c)->probes++;
	return of(c)->peer->mute;
}

static void set_timer(struct cm_conn *c, uint64_t deadline_ns)
{
	of(c)->deadline_ns = deadline_ns;
}

static const struct cm_conn_ops ops = {.send = send_out,
				       .happened = happened,
				       .is_silent = is_silent,
				       .set_timer = set_timer};

static void world_init(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->auto_accept = true;
	w->a.world = w->b.world = w;
	w->a.peer = &w->b;
	w->b.peer = &w->a;
	w->a.deadline_ns = w->b.deadline_ns = UINT64_MAX;
	cm_conn_init(&w->a.conn, &ops, 0xa0);
	cm_conn_init(&w->b.conn, &ops, 0xb0);
}

static void ask(struct world *w, uint16_t kind)
{
	struct wire_cm_msg req = {.kind = kind,
				  .qpn = 17,
				  .psn = 1000,
				  .mtu = 5,
				  .path.ack_timeout = ACK_TIMEOUT};

	req.responder_resources = 2;
	assert_int_equal(cm_conn_connect(&w->a.conn, &req, w->now_ns), 0);
}

static int answer(struct world *w)
{
	struct wire_cm_msg rep = {.qpn = 18, .psn = 2000};

	rep.kind = w->b.conn.req.kind == WIRE_CM_REQ ? WIRE_CM_REP
						     : WIRE_CM_SIDR_REP;
	return cm_conn_accept(&w->b.conn, &rep, w->now_ns);
}

static void deliver(struct world *w)
{
	while (w->head != w->tail) {
		struct end *to = w->queue[w->head % QUEUE].to;
		struct wire_cm_msg m = w->queue[w->head++ % QUEUE].msg;
		bool request =
			m.kind == WIRE_CM_REQ || m.kind == WIRE_CM_SIDR_REQ;

		if (to == &w->b && request && !w->b_exists) {
			w->b_exists = true;
			cm_conn_take(&w->b.conn, &m);
			if (w->auto_accept)
				assert_int_equal(answer(w), 0);
		} else if (to == &w->a || w->b_exists) {
			cm_conn_input(&to->conn, &m, w->now_ns);
		}
	}
}

/* Runs until nothing is left to do. */
static void run(struct world *w)
{
	for (unsigned i = 0; i < 100; i++) {
		struct end *e;

		deliver(w);
		e = w->a.deadline_ns <= w->b.deadline_ns ? &w->a : &w->b;
		if (e->deadline_ns == UINT64_MAX)
			return;
		w->now_ns = e->deadline_ns;
		e->deadline_ns = UINT64_MAX;
		cm_conn_timeout(&e->conn, w->now_ns);
	}
	fail_msg("it never ends");
}

static void test_connect(void **state)
{
	struct world w;

	world_init(&w);
	ask(&w, WIRE_CM_REQ);
	run(&w);
	assert_int_equal(w.a.conn.state, CM_ESTABLISHED);
	assert_int_equal(w.b.conn.state, CM_ESTABLISHED);
	assert_int_equal(w.sent, 3);
	assert_int_equal(w.a.conn.remote.qpn, 18);
	assert_int_equal(w.b.conn.remote.qpn, 17);
	assert_int_equal(w.b.conn.remote.responder_resources, 2);
	assert_int_equal(w.a.conn.remote_id, 0xb0);
	assert_int_equal(cm_conn_disconnect(&w.a.conn, w.now_ns), 0);
	deliver(&w);
	assert_int_equal(w.b.happened[CM_DISCONNECTED], 1);
	assert_int_equal(w.a.conn.state, CM_TIMEWAIT);
	assert_int_equal(w.b.conn.state, CM_TIMEWAIT);
	run(&w);
	assert_int_equal(w.a.happened[CM_DISCONNECTED], 1);
	assert_int_equal(w.a.conn.state, CM_CLOSED);
	assert_int_equal(w.b.conn.state, CM_CLOSED);
	/* A second time is no error and says nothing. */
	assert_int_equal(cm_conn_disconnect(&w.a.conn, w.now_ns), 0);
	assert_int_equal(w.sent, 5);
}

/* Whichever message is lost, both ends get there, and each event comes once. */
static void test_loss(void **state)
{
	for (unsigned lose = 1; lose <= 5; lose++) {
		struct world w;

		world_init(&w);
		w.lose = lose;
		ask(&w, WIRE_CM_REQ);
		run(&w);
		assert_int_equal(w.a.conn.state, CM_ESTABLISHED);
		assert_int_equal(w.b.conn.state, CM_ESTABLISHED);
		assert_int_equal(w.a.happened[CM_RESPONSE], 1);
		assert_int_equal(w.b.happened[CM_CONNECTED], 1);
		assert_int_equal(cm_conn_disconnect(&w.a.conn, w.now_ns), 0);
		run(&w);
		assert_int_equal(w.a.happened[CM_DISCONNECTED], 1);
		assert_int_equal(w.b.happened[CM_DISCONNECTED], 1);
	}
}

static void test_reject(void **state)
{
	struct world w;

	world_init(&w);
	w.auto_accept = false;
	ask(&w, WIRE_CM_REQ);
	deliver(&w);
	assert_int_equal(cm_conn_reject(&w.b.conn, 28, "no", 2), 0);
	run(&w);
	assert_int_equal(w.a.happened[CM_REFUSED], 1);
	assert_int_equal(w.a.status, 28);
	assert_int_equal(w.a.conn.state, CM_CLOSED);
	assert_int_equal(answer(&w), -EINVAL);
	assert_int_equal(cm_conn_establish(&w.a.conn, w.now_ns), -EINVAL);
	assert_int_equal(cm_conn_reject(&w.b.conn, 28, NULL, 0), -EINVAL);
	assert_int_equal(cm_conn_reject(&w.b.conn, 28, NULL, 255), -EINVAL);
}

/* An application that takes its time: the request is repeated once, patience is
 * asked for, and nothing more is sent until it answers. */
static void test_patience(void **state)
{
	struct world w;

	world_init(&w);
	w.auto_accept = false;
	ask(&w, WIRE_CM_REQ);
	deliver(&w);
	cm_conn_timeout(&w.a.conn, w.now_ns += CM_INTERVAL_MIN_NS);
	deliver(&w);
	assert_int_equal(w.a.conn.state, CM_REQ_DELAYED);
	assert_true(w.a.deadline_ns - w.now_ns > 60000000000ull);
	w.auto_accept = true;
	assert_int_equal(answer(&w), 0);
	run(&w);
	assert_int_equal(w.b.conn.state, CM_ESTABLISHED);
}

static void test_nobody(void **state)
{
	struct world w;

	world_init(&w);
	w.lose_kind = WIRE_CM_REQ;
	ask(&w, WIRE_CM_REQ);
	run(&w);
	assert_int_equal(w.a.happened[CM_UNREACHABLE], 1);
	assert_int_equal(w.a.status, -ETIMEDOUT);
	assert_int_equal(w.sent, CM_SENDS + 1); /* and a last word */
	/* An answer that nobody hears. */
	world_init(&w);
	w.lose_kind = WIRE_CM_REP;
	ask(&w, WIRE_CM_REQ);
	run(&w);
	assert_int_equal(
		w.b.happened[CM_UNREACHABLE] + w.b.happened[CM_REFUSED], 1);
}

static void test_both_disconnect(void **state)
{
	struct world w;

	world_init(&w);
	ask(&w, WIRE_CM_REQ);
	run(&w);
	assert_int_equal(cm_conn_disconnect(&w.a.conn, w.now_ns), 0);
	assert_int_equal(cm_conn_disconnect(&w.b.conn, w.now_ns), 0);
	run(&w);
	assert_int_equal(w.a.happened[CM_DISCONNECTED], 1);
	assert_int_equal(w.b.happened[CM_DISCONNECTED], 1);
}

static void test_sidr(void **state)
{
	struct world w;

	world_init(&w);
	w.lose = 2;
	ask(&w, WIRE_CM_SIDR_REQ);
	run(&w);
	assert_int_equal(w.a.happened[CM_CONNECTED], 1);
	assert_int_equal(w.a.conn.remote.qpn, 18);
	assert_int_equal(w.b.conn.state, CM_SIDR_DONE);
	world_init(&w);
	w.auto_accept = false;
	ask(&w, WIRE_CM_SIDR_REQ);
	deliver(&w);
	assert_int_equal(cm_conn_reject(&w.b.conn, 0, NULL, 0), 0);
	run(&w);
	assert_int_equal(w.a.happened[CM_UNREACHABLE], 1);
	assert_int_equal(w.a.status, WIRE_CM_SIDR_REJECT);
}

/* Every state can be closed, and its peer learns of it. */
static void test_close_and_lost(void **state)
{
	struct world w;

	world_init(&w);
	ask(&w, WIRE_CM_REQ);
	run(&w);
	cm_conn_close(&w.a.conn);
	run(&w);
	assert_int_equal(w.b.happened[CM_DISCONNECTED], 1);
	world_init(&w);
	w.auto_accept = false;
	ask(&w, WIRE_CM_REQ);
	deliver(&w);
	cm_conn_close(&w.b.conn);
	run(&w);
	assert_int_equal(w.a.happened[CM_REFUSED], 1);
	world_init(&w);
	ask(&w, WIRE_CM_REQ);
	run(&w);
	cm_conn_lost(&w.b.conn, w.now_ns);
	assert_int_equal(w.b.happened[CM_DISCONNECTED], 1);
	cm_conn_lost(&w.b.conn, w.now_ns);
	assert_int_equal(w.b.happened[CM_DISCONNECTED], 1);
	world_init(&w);
	ask(&w, WIRE_CM_REQ);
	cm_conn_lost(&w.a.conn, w.now_ns);
	assert_int_equal(w.a.happened[CM_UNREACHABLE], 1);
}

static void test_notify(void **state)
{
	struct world w;

	world_init(&w);
	w.lose_kind = WIRE_CM_RTU;
	ask(&w, WIRE_CM_REQ);
	deliver(&w);
	assert_int_equal(w.b.conn.state, CM_REP_SENT);
	assert_int_equal(cm_conn_notify(&w.b.conn, w.now_ns), 0);
	assert_int_equal(w.b.happened[CM_CONNECTED], 1);
	assert_int_equal(cm_conn_notify(&w.b.conn, w.now_ns), 0);
	assert_int_equal(w.b.happened[CM_CONNECTED], 1);
}

/* After the end each side is told, once, that nothing of it is on the way any
 * more: as long after as an acknowledgement is waited for. */
static void test_timewait(void **state)
{
	struct wire_cm_msg dreq = {.kind = WIRE_CM_DREQ, .local_id = 0xa0};
	struct world w;
	uint64_t end_ns;

	world_init(&w);
	ask(&w, WIRE_CM_REQ);
	run(&w);
	w.lose_kind = WIRE_CM_DREP;
	assert_int_equal(cm_conn_disconnect(&w.a.conn, w.now_ns), 0);
	deliver(&w);
	end_ns = w.now_ns + (4096ull << ACK_TIMEOUT);
	assert_int_equal(w.b.deadline_ns, end_ns);
	assert_int_equal(w.b.happened[CM_RESTED], 0);
	/* The answer was lost: it is given again, also later. */
	w.lose_kind = 0;
	cm_conn_input(&w.b.conn, &dreq, w.now_ns);
	deliver(&w);
	assert_int_equal(w.a.conn.state, CM_TIMEWAIT);
	run(&w);
	assert_int_equal(w.a.happened[CM_DISCONNECTED], 1);
	assert_int_equal(w.a.happened[CM_RESTED], 1);
	assert_int_equal(w.b.happened[CM_RESTED], 1);
	assert_int_equal(w.now_ns, end_ns);
	/* Nobody waits after a refusal, and who closes is not told. */
	world_init(&w);
	ask(&w, WIRE_CM_REQ);
	run(&w);
	assert_int_equal(cm_conn_disconnect(&w.a.conn, w.now_ns), 0);
	deliver(&w);
	cm_conn_close(&w.a.conn);
	assert_int_equal(w.a.deadline_ns, UINT64_MAX);
	cm_conn_timeout(&w.a.conn, w.now_ns);
	assert_int_equal(w.a.happened[CM_RESTED], 0);
}

/* Silence ends a connection, and nothing less; the peer is told. */
static void test_silence(void **state)
{
	struct world w;

	world_init(&w);
	w.a.conn.probe_ns = 1000;
	ask(&w, WIRE_CM_REQ);
	deliver(&w);
	assert_int_equal(w.a.conn.state, CM_ESTABLISHED);
	for (unsigned i = 0; i < 100; i++) {
		/* All but one of so many are missed, again and again. */
		w.b.mute = i % CM_PROBES != 0;
		assert_int_equal(w.a.deadline_ns, w.now_ns + 1000);
		cm_conn_timeout(&w.a.conn, w.now_ns = w.a.deadline_ns);
		assert_int_equal(w.a.conn.state, CM_ESTABLISHED);
	}
	assert_int_equal(w.a.probes, 100);
	w.b.mute = false;
	cm_conn_timeout(&w.a.conn, w.now_ns);
	w.b.mute = true;
	for (unsigned i = 0; i < CM_PROBES; i++) {
		assert_int_equal(w.a.happened[CM_DISCONNECTED], 0);
		cm_conn_timeout(&w.a.conn, w.now_ns = w.a.deadline_ns);
	}
	assert_int_equal(w.a.happened[CM_DISCONNECTED], 1);
	assert_int_equal(w.a.status, -ETIMEDOUT);
	assert_int_equal(w.a.conn.state, CM_TIMEWAIT);
	run(&w);
	assert_int_equal(w.b.happened[CM_DISCONNECTED], 1);
	assert_int_equal(w.a.happened[CM_RESTED], 1);
	assert_int_equal(w.a.happened[CM_DISCONNECTED], 1);
}

/* Who is told that its packets are too long asks again with shorter ones; what
 * comes twice, or asks for more, does not lead in circles. */
static void test_narrow(void **state)
{
	struct wire_cm_msg rej = {.kind = WIRE_CM_REJ,
				  .reason = WIRE_CM_REJ_MTU,
				  .ari_len = 1,
				  .ari = {3}};
	struct world w;

	world_init(&w);
	w.auto_accept = false;
	ask(&w, WIRE_CM_REQ);
	w.head = w.tail;
	rej.tid = w.a.conn.tid;
	rej.remote_id = w.a.conn.local_id;
	cm_conn_input(&w.a.conn, &rej, w.now_ns);
	assert_int_equal(w.sent, 2);
	assert_int_equal(w.queue[w.head % QUEUE].msg.mtu, 3);
	cm_conn_input(&w.a.conn, &rej, w.now_ns); /* the same again */
	assert_int_equal(w.sent, 2);
	assert_int_equal(w.a.conn.state, CM_REQ_SENT);
	w.auto_accept = true;
	run(&w);
	assert_int_equal(w.b.conn.state, CM_ESTABLISHED);
	assert_int_equal(w.b.conn.req.mtu, 3);
	for (uint8_t mtu = 0; mtu < 8; mtu += 5) {
		world_init(&w);
		ask(&w, WIRE_CM_REQ);
		w.head = w.tail;
		rej.ari[0] = mtu;
		rej.tid = w.a.conn.tid;
		cm_conn_input(&w.a.conn, &rej, w.now_ns);
		assert_int_equal(w.a.happened[CM_REFUSED], 1);
		assert_int_equal(w.a.status, WIRE_CM_REJ_MTU);
	}
}

/* A stranger who found our number cannot end the connection. */
static void test_stranger(void **state)
{
	static const uint16_t kinds[] = {WIRE_CM_DREQ, WIRE_CM_REJ,
					 WIRE_CM_DREP, WIRE_CM_REP,
					 WIRE_CM_RTU};
	struct world w;

	world_init(&w);
	ask(&w, WIRE_CM_REQ);
	run(&w);
	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++) {
		struct wire_cm_msg m = {.kind = kinds[i],
					.local_id = 0xb1,
					.remote_id = w.a.conn.local_id,
					.tid = w.a.conn.tid};

		for (; m.local_id; m.local_id = m.local_id == 0xb1 ? 1 : 0)
			cm_conn_input(&w.a.conn, &m, w.now_ns);
		cm_conn_input(&w.a.conn, &m, w.now_ns);
	}
	assert_int_equal(w.a.conn.state, CM_ESTABLISHED);
	assert_int_equal(w.a.happened[CM_DISCONNECTED], 0);
	assert_int_equal(w.sent, 3);
}

static void test_stray(void **state)
{
	struct wire_cm_msg m = {
		.kind = WIRE_CM_DREQ, .local_id = 1, .remote_id = 2};
	struct wire_cm_msg out;

	assert_true(cm_stray_answer(&m, &out));
	assert_int_equal(out.kind, WIRE_CM_DREP);
	assert_int_equal(out.local_id, 2);
	assert_int_equal(out.remote_id, 1);
	m.kind = WIRE_CM_REP;
	assert_true(cm_stray_answer(&m, &out));
	assert_int_equal(out.kind, WIRE_CM_REJ);
	m.kind = WIRE_CM_DREP;
	assert_false(cm_stray_answer(&m, &out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_reject),
		cmocka_unit_test(test_patience),
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_both_disconnect),
		cmocka_unit_test(test_sidr),
		cmocka_unit_test(test_close_and_lost),
		cmocka_unit_test(test_notify),
		cmocka_unit_test(test_timewait),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_narrow),
		cmocka_unit_test(test_stranger),
		cmocka_unit_test(test_stray),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
