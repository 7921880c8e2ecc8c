/* SPDX-License-Identifier: Apache-2.0 */
/* Racks, regions and operations against nodes in memory. */
#include "client_fake.h"

#include <semaphore.h>
#include <sys/wait.h>

static struct aq_rack *open_rack(struct fake_rack *f)
{
	struct aq_rack *rack;

	assert_int_equal(client_rack_open(NULL, &fake_transport, f, &rack), 0);
	return rack;
}

static void test_discovery(void **state)
{
	struct fake_rack *f = *state;
	struct aq_rack *rack = open_rack(f);
	char dir[96];

	assert_int_equal(client_rack_nodes(rack), FAKE_NODES);
	assert_string_equal(rack->node[1].name, "m1");
	assert_string_equal(rack->token, FAKE_TOKEN);
	aq_rack_close(rack);
	/* The file adds a node and wins over a socket of the same name. */
	fake_write_file(f->dir, "rack.ini",
			"[node m1]\naddress=https://h:1\nca=/ca.pem\n"
			"[node far]\naddress=10.0.0.1:99\n");
	rack = open_rack(f);
	assert_int_equal(client_rack_nodes(rack), FAKE_NODES + 1);
	assert_string_equal(rack->node[0].name, "far");
	assert_string_equal(rack->node[0].address, "http://10.0.0.1:99");
	assert_string_equal(rack->node[2].address, "https://h:1");
	assert_string_equal(rack->node[2].ca_path, "/ca.pem");
	aq_rack_close(rack);
	fake_write_file(f->dir, "rack.ini", "");

	assert_int_equal(client_rack_open("empty", &fake_transport, f, &rack),
			 -ENOENT);
	assert_non_null(strstr(aq_last_error(), "aquifer up"));
	assert_int_equal(client_rack_open("BAD", &fake_transport, f, &rack),
			 -EINVAL);
	for (unsigned i = 0; i < FAKE_NODES; i++)
		f->node[i].is_down = true;
	assert_int_equal(client_rack_open(NULL, &fake_transport, f, &rack),
			 -EHOSTDOWN);
	f->node[0].is_down = false;
	f->node[0].proto = "2.0";
	assert_int_equal(client_rack_open(NULL, &fake_transport, f, &rack),
			 -EPROTONOSUPPORT);
	assert_non_null(strstr(aq_last_error(), "2.0"));
	snprintf(dir, sizeof(dir), "%s/local", f->dir);
	fake_write_file(dir, "token", "short\n");
	assert_int_equal(client_rack_open(NULL, &fake_transport, f, &rack),
			 -EINVAL);
}

static void test_settings(void **state)
{
	struct aq_rack *rack = open_rack(*state);
	char other[] = FAKE_TOKEN;
	struct aq_region *r;

	assert_int_equal(aq_rack_deadline(rack), 5000);
	assert_int_equal(aq_rack_set_deadline(rack, 0), -ERANGE);
	assert_int_equal(aq_rack_set_deadline(rack, UINT32_MAX), -ERANGE);
	assert_int_equal(aq_rack_set_deadline(rack, 20), 0);
	assert_int_equal(aq_rack_deadline(rack), 20);
	assert_int_equal(aq_rack_set_token(rack, "x"), -EINVAL);
	/* Another token: every node refuses it. */
	other[0] = 'f';
	assert_int_equal(aq_rack_set_token(rack, other), 0);
	assert_int_equal(aq_region_create(rack, "r", 4096, NULL, &r), -EACCES);
	assert_int_equal(aq_region_open(rack, "r", 0, &r), -EACCES);
	assert_non_null(strstr(aq_last_error(), "be nice"));
	aq_rack_close(rack);
}

/* Two who make a region meet at any node that both can reach. */
static void a_name_is_claimed_at_every_node(void **state)
{
	struct fake_rack *f = *state;
	struct aq_rack *rack = open_rack(f);
	struct aq_region *r;

	assert_int_equal(aq_rack_set_deadline(rack, 20), 0);
	for (unsigned i = 0; i < FAKE_NODES; i++) {
		f->node[i].is_others_claim = true;
		assert_int_equal(aq_region_create(rack, "r", 4096, NULL, &r),
				 -EBUSY);
		f->node[i].is_others_claim = false;
		/* Nothing is left of the tries. */
		for (unsigned k = 0; k < FAKE_NODES; k++)
			assert_false(f->node[k].is_claimed);
	}
	f->node[0].is_down = true;
	f->node[2].is_down = true;
	assert_int_equal(aq_region_create(rack, "r", 4096, NULL, &r), 0);
	assert_false(f->node[1].is_claimed);
	aq_region_close(r);
	aq_rack_close(rack);
}

/* It is rack.deadline of the settings at first. */
static void test_deadline_of_the_settings(void **state)
{
	static const struct {
		const char *text;
		int err;
		uint32_t ms;
	} row[] = {{"250", 0, 250},
		   {"3600000", 0, 3600000},
		   {"0", -EINVAL, 0},
		   {"3600001", -EINVAL, 0},
		   {"soon", -EINVAL, 0}};

	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		struct aq_rack *rack = NULL;

		setenv("AQUIFER_RACK_DEADLINE", row[i].text, 1);
		assert_int_equal(
			client_rack_open(NULL, &fake_transport, *state, &rack),
			row[i].err);
		if (!row[i].err)
			assert_int_equal(aq_rack_deadline(rack), row[i].ms);
		aq_rack_close(rack);
	}
	unsetenv("AQUIFER_RACK_DEADLINE");
}

static void test_one_node(void **state)
{
	struct fake_rack *f = *state;
	struct aq_rack *rack = open_rack(f);
	struct aq_region_stat st;
	struct aq_region *r, *again;
	uint64_t old = 0, value = 5;
	char text[16] = "";

	assert_int_equal(aq_region_create(rack, "r", 100000, NULL, &r), 0);
	/* The node with the most free memory has it. */
	assert_non_null(fake_region(&f->node[0], "r"));
	assert_int_equal(aq_region_create(rack, "r", 1, NULL, &again), -EEXIST);
	assert_int_equal(aq_region_stat(r, &st), 0);
	assert_int_equal(st.size_bytes, 100000);
	assert_int_equal(st.nodes, 1);
	assert_int_equal(st.stripe_bytes, 0);

	assert_int_equal(aq_write(r, 99990, "0123456789", 10), 0);
	assert_int_equal(aq_read(r, 99990, text, 10), 0);
	assert_string_equal(text, "0123456789");
	assert_int_equal(aq_read(r, 99991, text, 10), -ERANGE);
	assert_int_equal(aq_read(r, UINT64_MAX, text, 2), -ERANGE);
	assert_int_equal(aq_read(r, 100000, text, 0), 0);

	assert_int_equal(aq_write(r, 8, &value, 8), 0);
	assert_int_equal(aq_cas(r, 8, 5, 7, &old), 0);
	assert_int_equal(old, 5);
	assert_int_equal(aq_cas(r, 8, 5, 9, &old), 0);
	assert_int_equal(old, 7);
	assert_int_equal(aq_faa(r, 8, 3, NULL), 0);
	assert_int_equal(aq_faa(r, 8, 0, &old), 0);
	assert_int_equal(old, 10);
	assert_int_equal(aq_faa(r, 12, 0, &old), -EINVAL);
	assert_int_equal(aq_faa(r, 100000, 0, &old), -ERANGE);

	assert_int_equal(aq_region_open(rack, "r", AQ_REGION_READ_ONLY, &again),
			 0);
	assert_int_equal(aq_read(again, 8, &old, 8), 0);
	assert_int_equal(old, 10);
	assert_int_equal(aq_write(again, 8, &old, 8), -EACCES);
	aq_region_close(again);
	/* Who may have to be shut out asks for a grant that can end. */
	assert_int_equal(f->revocable_grants, 0);
	assert_int_equal(aq_region_open(rack, "r", AQ_REGION_REVOCABLE, &again),
			 0);
	assert_int_equal(aq_read(again, 8, &old, 8), 0);
	assert_int_equal(old, 10);
	assert_int_equal(f->revocable_grants, 1);
	aq_region_close(again);
	aq_region_close(r);
	assert_int_equal(aq_region_delete(rack, "r"), 0);
	assert_int_equal(aq_region_delete(rack, "r"), -ENOENT);
	assert_int_equal(aq_region_open(rack, "r", 0, &r), -ENOENT);
	assert_int_equal(aq_region_open(rack, "a/b", 0, &r), -EINVAL);
	assert_int_equal(aq_region_open(rack, "r", 8, &r), -EINVAL);
	aq_rack_close(rack);
}

struct listed {
	unsigned count;
	struct aq_region_stat stat[4];
};

static int take_listed(const char *name, const struct aq_region_stat *stat,
		       void *user)
{
	struct listed *l = user;

	l->stat[l->count++] = *stat;
	return 0;
}

static void test_striped(void **state)
{
	struct aq_region_options o = {.nodes = 3, .stripe_bytes = 4096};
	const size_t len = 700001;
	struct fake_rack *f = *state;
	struct aq_rack *rack = open_rack(f);
	uint8_t *a = malloc(len), *b = malloc(len);
	struct listed l = {0};
	struct aq_region *r;

	for (size_t i = 0; i < len; i++)
		a[i] = (uint8_t)(i * 31 + i / 4096);
	assert_int_equal(aq_region_create(rack, "s", len, &o, &r), 0);
	assert_int_equal(aq_region_size(r), len);
	assert_int_equal(aq_write(r, 0, a, len), 0);
	assert_int_equal(aq_read(r, 0, b, len), 0);
	assert_memory_equal(a, b, len);
	assert_int_equal(aq_read(r, 4000, b, 9000), 0);
	assert_memory_equal(a + 4000, b, 9000);
	/* Stripe 4 is the second of piece 1. */
	assert_memory_equal(fake_region(&f->node[1], "s.1-3-c")->mem + 4096,
			    a + 4 * 4096, 4096);
	aq_region_close(r);

	assert_int_equal(aq_region_open(rack, "s", 0, &r), 0);
	assert_int_equal(aq_region_size(r), len);
	assert_int_equal(aq_region_resize(r, 2 * len), 0);
	assert_int_equal(aq_region_size(r), 2 * len);
	assert_int_equal(aq_read(r, 0, b, len), 0);
	assert_memory_equal(a, b, len);
	assert_int_equal(aq_read(r, len, b, len), 0);
	assert_int_equal(b[len - 1], 0);
	/* Too much for one node: all go back. */
	assert_int_equal(aq_region_resize(r, 30 << 20), -ENOSPC);
	assert_int_equal(aq_region_size(r), 2 * len);
	assert_int_equal(aq_read(r, 0, b, len), 0);
	assert_memory_equal(a, b, len);

	assert_int_equal(aq_region_each(rack, take_listed, &l), 0);
	assert_int_equal(l.count, 1);
	assert_int_equal(l.stat[0].nodes, 3);
	assert_int_equal(l.stat[0].size_bytes, 2 * len);
	assert_int_equal(l.stat[0].stripe_bytes, 4096);
	assert_int_equal(l.stat[0].nodes_missing, 0);
	f->node[2].is_down = true;
	/* Its size is not forgotten with a node. */
	assert_int_equal(aq_region_each(rack, take_listed, &l), 0);
	assert_int_equal(l.stat[1].nodes, 3);
	assert_int_equal(l.stat[1].nodes_missing, 1);
	assert_in_range(l.stat[1].size_bytes, 2 * len - 3 * 4096,
			2 * len + 3 * 4096);
	assert_int_equal(aq_read(r, 0, b, 4096), 0);
	assert_int_equal(aq_read(r, 0, b, len), -EHOSTDOWN);
	aq_region_close(r);
	assert_int_equal(aq_region_open(rack, "s", 0, &r), -EHOSTDOWN);
	f->node[2].is_down = false;
	assert_int_equal(aq_region_delete(rack, "s"), 0);
	assert_int_equal(f->node[1].used, 0);
	free(a);
	free(b);
	aq_rack_close(rack);
}

static void test_make_errors(void **state)
{
	struct fake_rack *f = *state;
	struct aq_rack *rack = open_rack(f);
	struct aq_region_options o = {.nodes = 3};
	struct aq_region *r;

	assert_int_equal(aq_region_create(rack, "r", 0, NULL, &r), -EINVAL);
	assert_int_equal(aq_region_create(rack, "r", 1ull << 48, NULL, &r),
			 -EINVAL);
	assert_int_equal(aq_region_create(rack, "r", 9 << 20, NULL, &r),
			 -ENOSPC);
	f->node[0].quota = 1 << 20;
	assert_int_equal(aq_region_create(rack, "r", 2 << 20, NULL, &r),
			 -EDQUOT);
	/* The last of three fails: the first two are taken back. */
	f->node[0].quota = 64 << 20;
	f->node[2].quota = 1;
	assert_int_equal(aq_region_create(rack, "r", 3 << 20, &o, &r), -EDQUOT);
	assert_int_equal(f->node[0].used, 0);
	assert_int_equal(f->node[1].used, 0);
	o.nodes = 4;
	assert_int_equal(aq_region_create(rack, "r", 1, &o, &r), -EHOSTDOWN);
	o.nodes = 2;
	o.node = "m1";
	assert_int_equal(aq_region_create(rack, "r", 1, &o, &r), -EINVAL);
	o.nodes = 0;
	assert_int_equal(aq_region_create(rack, "r", 1, &o, &r), 0);
	assert_non_null(fake_region(&f->node[1], "r"));
	aq_region_close(r);
	o.node = "m9";
	assert_int_equal(aq_region_create(rack, "q", 1, &o, &r), -ENOENT);
	o.node = NULL;
	o.stripe_bytes = 5000;
	assert_int_equal(aq_region_create(rack, "q", 1, &o, &r), -EINVAL);
	aq_rack_close(rack);
}

/* Somebody else resizes: the keys die, and the operation goes on. */
static void test_refresh(void **state)
{
	struct fake_rack *f = *state;
	struct aq_rack *rack = open_rack(f);
	struct client_http_reply reply;
	struct aq_region *r;
	uint64_t v = 77, old;

	assert_int_equal(aq_region_create(rack, "r", 8192, NULL, &r), 0);
	assert_int_equal(aq_write(r, 0, &v, 8), 0);
	assert_int_equal(f->grants, 1);
	assert_int_equal(aq_write(r, 8, &v, 8), 0);
	assert_int_equal(f->grants, 1);
	fake_resize(f, &f->node[0], fake_region(&f->node[0], "r"), 16384,
		    &reply, 200);
	assert_int_equal(aq_faa(r, 0, 1, &old), 0);
	assert_int_equal(old, 77);
	assert_int_equal(f->grants, 2);
	assert_int_equal(aq_region_size(r), 16384);
	/* The connection is lost: reads go on. What changes memory does not,
	 * because it may have been done. */
	f->node[0].forgets_conns = true;
	assert_int_equal(aq_read(r, 0, &old, 8), 0);
	assert_int_equal(old, 78);
	f->node[0].forgets_conns = true;
	assert_int_equal(aq_write(r, 0, &v, 8), -EHOSTDOWN);
	f->node[0].forgets_conns = true;
	assert_int_equal(aq_faa(r, 0, 1, &old), -EHOSTDOWN);
	assert_int_equal(aq_faa(r, 0, 1, &old), 0);
	assert_int_equal(old, 78);
	/* Shrunk below the offset. */
	fake_resize(f, &f->node[0], fake_region(&f->node[0], "r"), 4096, &reply,
		    200);
	assert_int_equal(aq_read(r, 8000, &old, 8), -ERANGE);
	aq_region_close(r);
	aq_rack_close(rack);
}

static void test_stale(void **state)
{
	struct fake_rack *f = *state;
	struct aq_rack *rack = open_rack(f);
	struct aq_region *r, *again;
	uint64_t v = 1;

	assert_int_equal(aq_region_create(rack, "r", 8192, NULL, &r), 0);
	assert_int_equal(aq_write(r, 0, &v, 8), 0);
	assert_int_equal(aq_region_delete(rack, "r"), 0);
	assert_int_equal(aq_write(r, 0, &v, 8), -ESTALE);
	/* Another of the same name is not the one that was opened. */
	assert_int_equal(aq_region_create(rack, "r", 8192, NULL, &again), 0);
	assert_int_equal(aq_write(r, 0, &v, 8), -ESTALE);
	assert_int_equal(aq_write(again, 0, &v, 8), 0);
	aq_region_close(r);
	/* A node that was started anew has another region of that number, even
	 * if it gave it the same epoch. */
	f->node[0].is_down = true;
	assert_int_equal(aq_write(again, 0, &v, 8), -EHOSTDOWN);
	f->node[0].is_down = false;
	f->node[0].incarnation++;
	assert_int_equal(aq_write(again, 0, &v, 8), -ESTALE);
	aq_region_close(again);
	aq_rack_close(rack);
}

/* A closed handle says so, also when its place has another owner. */
/* A region that moves from a node that is asked later to one that was asked
 * already is found. */
static void test_passed_between_two_questions(void **state)
{
	struct fake_rack *f = *state;
	struct aq_rack *rack = open_rack(f);
	const struct aq_region_options o = {.node = "m1"};
	struct aq_region *r;

	assert_int_equal(aq_region_create(rack, "r", 4096, &o, &r), 0);
	aq_region_close(r);
	f->passes = "r";
	assert_int_equal(aq_region_open(rack, "r", 0, &r), 0);
	assert_null(f->passes);
	aq_region_close(r);
	assert_int_equal(aq_region_open(rack, "none", 0, &r), -ENOENT);
	aq_rack_close(rack);
}

static void test_closed(void **state)
{
	struct fake_rack *f = *state;
	struct aq_rack *rack = open_rack(f);
	struct aq_region *r, *other;
	uint64_t v = 1, old;

	assert_int_equal(aq_region_create(rack, "r", 8192, NULL, &r), 0);
	assert_int_equal(aq_write(r, 0, &v, 8), 0);
	aq_region_close(r);
	assert_int_equal(aq_write(r, 0, &v, 8), -EBADF);
	assert_int_equal(aq_faa(r, 0, 1, &old), -EBADF);
	aq_region_close(r);
	assert_int_equal(aq_region_open(rack, "r", 0, &other), 0);
	assert_int_equal(aq_read(r, 0, &v, 8), -EBADF);
	assert_int_equal(aq_read(other, 0, &v, 8), 0);
	aq_region_close(other);
	/* However many are closed, nothing is lost or freed twice. */
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(aq_region_open(rack, "r", 0, &other), 0);
		aq_region_close(other);
	}
	assert_int_equal(aq_read(other, 0, &v, 8), -EBADF);
	aq_rack_close(rack);
}

/* Nobody answers: the deadline holds, and nothing is left in flight. */
static void test_deadline(void **state)
{
	struct fake_rack *f = *state;
	struct aq_rack *rack = open_rack(f);
	static uint8_t big[1 << 20];
	struct aq_region *r;
	uint64_t start;

	assert_int_equal(aq_region_create(rack, "r", sizeof(big), NULL, &r), 0);
	assert_int_equal(aq_write(r, 0, big, sizeof(big)), 0);
	f->node[0].is_silent = true;
	assert_int_equal(aq_rack_set_deadline(rack, 100), 0);
	start = f->now_ns;
	assert_int_equal(aq_read(r, 0, big, sizeof(big)), -EHOSTDOWN);
	assert_true(f->now_ns - start < 150000000ull);
	assert_int_equal(f->queue_count, 0);
	f->node[0].is_silent = false;
	assert_int_equal(aq_read(r, 0, big, sizeof(big)), 0);
	aq_region_close(r);
	aq_rack_close(rack);
}

/* A node that does not hear the end of a connection finds out by itself: that
 * it was too slow for this is nobody's reason. */
static void test_a_farewell_leaves_the_words_of_the_failure(void **state)
{
	struct fake_rack *f = *state;
	struct aq_rack *rack = open_rack(f);
	struct client_thread *t;
	struct client_bond bond;

	assert_int_equal(client_thread_get(rack, &t), 0);
	f->node[1].is_down = true;
	client_bond_init(&bond, 1);
	snprintf(bond.id, sizeof(bond.id), "c7");
	(void)error_set(-ENOSPC, "no room on m1");
	client_join_end(t, &bond);
	assert_string_equal(error_last(), "no room on m1");
	assert_int_equal(error_last_code(), -ENOSPC);
	assert_string_equal(bond.id, "");
	/* And there is no failure where there was none. */
	snprintf(bond.id, sizeof(bond.id), "c8");
	error_clear();
	client_join_end(t, &bond);
	assert_string_equal(error_last(), "");
	assert_int_equal(error_last_code(), 0);
	aq_rack_close(rack);
}

static void test_answers_are_checked(void **state)
{
	static const struct {
		unsigned status;
		const char *body;
		int err;
	} rows[] = {
		{200, "", -EPROTO},
		{200, "not json", -EPROTO},
		{200, "[]", -EPROTO},
		{200, "{\"proto\":\"1.0\",\"pool\":{}}", -EPROTO},
		/* What a node says to who is nobody there. */
		{200, "{\"proto\":\"1.0\"}", -EACCES},
		{200, "{\"proto\":1}", -EPROTO},
		{200, "{\"proto\":\"3.1\"}", -EPROTONOSUPPORT},
		{200, "{\"proto\":\"1\"}", -EPROTONOSUPPORT},
		{426, "{\"error\":{\"code\":\"-EPROTONOSUPPORT\"}}",
		 -EPROTONOSUPPORT},
		{500, "<html>", -EREMOTEIO},
		{507, "{\"error\":{\"code\":\"-EDQUOT\",\"message\":\"q\"}}",
		 -EDQUOT},
		{507, "{\"error\":{\"code\":\"EDQUOT\"}}", -ENOSPC},
		{404, "{\"error\":{\"code\":5}}", -ENOENT},
		{404, "{\"error\":7}", -ENOENT},
	};
	struct fake_rack *f = *state;
	struct aq_rack *rack = open_rack(f);
	struct client_node_status status;
	struct client_thread *t;

	assert_int_equal(client_thread_get(rack, &t), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		f->fail_status = rows[i].status;
		f->fail_body = rows[i].body;
		assert_int_equal(client_node_ask(t, 0, UINT64_MAX, &status),
				 rows[i].err);
	}
	f->fail_status = 0;
	aq_rack_close(rack);
}

static void test_fork(void **state)
{
	struct aq_rack *rack = open_rack(*state);
	struct aq_region *r;
	int status;
	pid_t pid;

	assert_int_equal(aq_region_create(rack, "r", 4096, NULL, &r), 0);
	assert_int_equal(aq_write(r, 0, "x", 1), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct aq_region *other;
		bool ok = aq_write(r, 0, "y", 1) == -ESTALE &&
			  aq_region_open(rack, "r", 0, &other) == -ESTALE;

		aq_region_close(r);
		aq_rack_close(rack);
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(aq_write(r, 0, "z", 1), 0);
	aq_region_close(r);
	aq_rack_close(rack);
}

static void *use_region(void *arg)
{
	uint64_t old;

	return aq_faa(arg, 0, 1, &old) ? arg : NULL;
}

static struct {
	sem_t began;
	_Atomic bool is_over;
} slow_end;

static void slow_thread_close(struct client_thread *t)
{
	sem_post(&slow_end.began);
	usleep(20000);
	fake_thread_close(t);
	slow_end.is_over = true;
}

/* A thread that ends while its rack is closed is waited for, and what it had is
 * destroyed once. */
static void test_thread_ends_while_rack_closes(void **state)
{
	struct fake_rack *f = *state;
	struct client_transport slow = fake_transport;
	struct aq_rack *rack;
	struct aq_region *r;
	pthread_t thread;

	slow.thread_close = slow_thread_close;
	assert_int_equal(sem_init(&slow_end.began, 0, 0), 0);
	assert_int_equal(client_rack_open(NULL, &slow, f, &rack), 0);
	assert_int_equal(aq_region_create(rack, "r", 4096, NULL, &r), 0);
	assert_int_equal(pthread_create(&thread, NULL, use_region, r), 0);
	sem_wait(&slow_end.began);
	aq_region_close(r);
	aq_rack_close(rack);
	assert_true(slow_end.is_over);
	pthread_join(thread, NULL);
	sem_destroy(&slow_end.began);
}

/* Each thread has connections of its own, and they end with the thread. */
static void test_threads(void **state)
{
	struct fake_rack *f = *state;
	struct aq_rack *rack = open_rack(f);
	struct aq_region *r;
	pthread_t thread;
	uint64_t old;
	void *bad;

	assert_int_equal(aq_region_create(rack, "r", 4096, NULL, &r), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&thread, NULL, use_region, r),
				 0);
		pthread_join(thread, &bad);
		assert_null(bad);
	}
	assert_int_equal(f->conns, 3);
	assert_int_equal(aq_faa(r, 0, 0, &old), 0);
	assert_int_equal(old, 3);
	aq_region_close(r);
	aq_rack_close(rack);
}

static void test_handle_limit(void **state)
{
	static struct aq_region *r[CLIENT_REGION_MAX];
	struct aq_rack *rack = open_rack(*state);
	struct aq_region *more;

	assert_int_equal(aq_region_create(rack, "r", 4096, NULL, &r[0]), 0);
	for (unsigned i = 1; i < CLIENT_REGION_MAX; i++)
		assert_int_equal(aq_region_open(rack, "r", 0, &r[i]), 0);
	assert_int_equal(aq_region_open(rack, "r", 0, &more), -EMFILE);
	aq_region_close(r[7]);
	assert_int_equal(aq_region_open(rack, "r", 0, &r[7]), 0);
	assert_int_equal(aq_write(r[7], 0, "a", 1), 0);
	for (unsigned i = 0; i < CLIENT_REGION_MAX; i++)
		aq_region_close(r[i]);
	aq_rack_close(rack);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_discovery),
		TEST(test_settings),
		TEST(a_name_is_claimed_at_every_node),
		TEST(test_deadline_of_the_settings),
		TEST(test_one_node),
		TEST(test_striped),
		TEST(test_make_errors),
		TEST(test_refresh),
		TEST(test_stale),
		TEST(test_passed_between_two_questions),
		TEST(test_closed),
		TEST(test_deadline),
		TEST(test_answers_are_checked),
		TEST(test_fork),
		TEST(test_threads),
		TEST(test_thread_ends_while_rack_closes),
		TEST(test_handle_limit),
		TEST(test_a_farewell_leaves_the_words_of_the_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
