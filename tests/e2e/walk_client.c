/* SPDX-License-Identifier: Apache-2.0 */
/* An application of <aquifer/walk.h>, for the tests walk_run and walk_switch:
 * one scenario per run, chosen by the first word. Knows only the public
 * headers. */
#include <aquifer/walk.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	PAGE = 4096, /* of a stripe: every node is in one of its own */
	FANOUT = 4,
	LEVELS = 2,
	RADIX = 16,
	LIST_NODES = 40,
	HELD = 64,
	FLIGHT = 6,
	WAYS = 3,
};

/* One node for all structures; shapes say what they use of it. */
struct node {
	uint64_t key, value, next, left, right, count, leaf;
	uint64_t keys[FANOUT], values[FANOUT], child[FANOUT + 1];
	uint64_t level[LEVELS];
	uint64_t slot[RADIX];
};

struct find {
	uint64_t found, state[2], key, value;
};

struct scan {
	uint64_t found, more, low, high, pair[8][2];
};

static struct aq_rack *rack;
static struct aq_region *region;
static uint64_t room = PAGE; /* where the next node goes; 0 is no pointer */

#define AT(member) ((uint32_t)offsetof(struct node, member))

static void die(const char *what, int err)
{
	fprintf(stderr, "%s: %d: %s\n", what, err, aq_last_error());
	exit(1);
}

static void must(const char *what, int err)
{
	if (err)
		die(what, err);
}

static uint64_t value_of(uint64_t key)
{
	return key * 100 + 1;
}

static void put_at(uint64_t at, const struct node *n)
{
	must("write", aq_write(region, at, n, sizeof(*n)));
}

static uint64_t put(const struct node *n)
{
	uint64_t at = room;

	room += PAGE;
	put_at(at, n);
	return at;
}

/* A list of the keys 1 to count; the last one leads to `end`. */
static uint64_t make_list(unsigned count, uint64_t end)
{
	uint64_t at = end;

	for (uint64_t key = count; key > 0; key--) {
		const struct node n = {
			.key = key, .value = value_of(key), .next = at};

		at = put(&n);
	}
	return at;
}

static struct aq_walk_shape list_shape(void)
{
	return (struct aq_walk_shape){.kind = AQ_WALK_LIST_FIND,
				      .key_at = AT(key),
				      .key_bytes = 8,
				      .value_at = AT(value),
				      .value_bytes = 8,
				      .next_at = AT(next)};
}

/* ---- running all ways ---------------------------------------------------- */

/* Of a pad of which little is sent the rest is zero, also where the one of the
 * walk before was: how many nodes are visited then. */
static uint64_t run_short(struct aq_walk *walk, uint64_t start)
{
	uint8_t pad[AQ_WALK_PAD_MAX];
	struct aq_walk_result r;
	struct aq_walk_info info;

	aq_walk_info(walk, &info);
	memset(pad, 0xff, info.pad_bytes);
	/* It ends in some way. */
	(void)aq_walk_run(walk, region, start, pad, info.pad_bytes, NULL);
	memset(pad, 0, sizeof(uint64_t));
	must("short pad",
	     aq_walk_run(walk, region, start, pad, sizeof(uint64_t), &r));
	return r.iterations;
}

/* Runs it here, there, and there with a switch that carries it on, if there is
 * one: the same pads, byte by byte. */
static void run_all(const char *what, const struct aq_walk_shape *shape,
		    uint64_t start, void *pad, size_t bytes)
{
	static const uint32_t flags[WAYS] = {
		AQ_WALK_HERE, AQ_WALK_THERE | AQ_WALK_CROSS_BOUNCE,
		AQ_WALK_THERE | AQ_WALK_CROSS_SWITCH};
	uint8_t got[WAYS][AQ_WALK_PAD_MAX];
	struct aq_walk_result r[WAYS];
	uint64_t visited[WAYS];

	for (unsigned i = 0; i < WAYS; i++) {
		const struct aq_walk_options o = {.flags = flags[i]};
		struct aq_walk *walk;

		memcpy(got[i], pad, bytes);
		must(what, aq_walk_make(rack, shape, &o, &walk));
		visited[i] = run_short(walk, aq_walk_start(shape, start));
		must(what,
		     aq_walk_run(walk, region, aq_walk_start(shape, start),
				 got[i], bytes, &r[i]));
		if (!(r[i].where & flags[i]))
			die("where", (int)r[i].where);
		aq_walk_close(walk);
		if (memcmp(got[0], got[i], bytes) != 0 ||
		    r[0].iterations != r[i].iterations || r[0].at != r[i].at ||
		    r[0].crossings != r[i].crossings ||
		    visited[0] != visited[i])
			die(what, -EBADMSG);
	}
	if (r[1].carried)
		die("carried", (int)r[1].carried);
	memcpy(pad, got[0], bytes);
	printf("%s %llu iterations, %u crossings, %u carried\n", what,
	       (unsigned long long)r[2].iterations, r[2].crossings,
	       r[2].carried);
}

static void run_find(const char *what, const struct aq_walk_shape *shape,
		     uint64_t start, uint64_t key, uint64_t want)
{
	struct find pad = {.key = key};

	run_all(what, shape, start, &pad, sizeof(pad));
	if (pad.found != (want != 0) ||
	    pad.value != (want ? value_of(want) : 0))
		die(what, -ENOENT);
}

/* ---- structures ---------------------------------------------------------- */

static void lists(void)
{
	struct aq_walk_shape s = list_shape();
	uint64_t first = make_list(LIST_NODES, 0), slot;
	struct node buckets = {.slot = {[3] = first}};

	run_find("list", &s, first, 33, 33);
	run_find("list without", &s, first, 1000, 0);
	s.kind = AQ_WALK_HASH_FIND;
	slot = put(&buckets) + AT(slot) + 3 * 8;
	run_find("hash", &s, slot, 12, 12);
}

static uint64_t bst(uint64_t low, uint64_t high)
{
	uint64_t key = (low + high) / 2;
	struct node n = {.key = 10 * key, .value = value_of(10 * key)};

	if (low > high)
		return 0;
	n.left = bst(low, key - 1);
	n.right = bst(key + 1, high);
	return put(&n);
}

static void trees(void)
{
	struct aq_walk_shape s = {.kind = AQ_WALK_BST_FIND,
				  .key_at = AT(key),
				  .key_bytes = 8,
				  .value_at = AT(value),
				  .value_bytes = 8,
				  .left_at = AT(left),
				  .right_at = AT(right)};
	/* The key that is found lies behind the one that is sought. */
	struct {
		struct find find;
		uint64_t value;
	} lower = {.find = {.key = 71}};
	uint64_t root = bst(1, 15);

	run_find("bst", &s, root, 50, 50);
	s.kind = AQ_WALK_BST_LOWER;
	run_all("bst lower", &s, root, &lower, sizeof(lower));
	if (lower.find.found != 1 || lower.find.value != 80 ||
	    lower.value != value_of(80))
		die("bst lower", -ENOENT);
}

static uint64_t leaf(uint64_t a, uint64_t b, uint64_t next)
{
	const struct node n = {.count = 2,
			       .leaf = 1,
			       .next = next,
			       .keys = {a, b},
			       .values = {value_of(a), value_of(b)}};

	return put(&n);
}

static void btrees(void)
{
	struct aq_walk_shape s = {.kind = AQ_WALK_BTREE_FIND,
				  .key_at = AT(keys),
				  .key_bytes = 8,
				  .key_stride = 8,
				  .value_at = AT(values),
				  .value_bytes = 8,
				  .value_stride = 8,
				  .next_at = AT(next),
				  .count_at = AT(count),
				  .count_bytes = 8,
				  .fanout = FANOUT,
				  .child_at = AT(child),
				  .child_stride = 8,
				  .leaf_at = AT(leaf),
				  .leaf_bytes = 8,
				  .leaf_mask = 1,
				  .leaf_value = 1,
				  .scan_pairs = 8};
	uint64_t third = leaf(60, 70, 0), second = leaf(30, 40, third);
	struct node root = {.count = 2,
			    .keys = {30, 60},
			    .values = {value_of(30), value_of(60)},
			    .child = {leaf(10, 20, second), second, third}};
	struct aq_walk_reduce sum = {.low = 20, .high = 60};
	struct scan scan = {.low = 20, .high = 60};
	uint64_t at = put(&root);

	run_find("btree", &s, at, 60, 60);
	run_find("btree leaf", &s, at, 70, 70);
	s.kind = AQ_WALK_BPLUS_FIND;
	run_find("bplus", &s, at, 40, 40);
	s.kind = AQ_WALK_BPLUS_SCAN;
	run_all("scan", &s, at, &scan, sizeof(scan));
	if (scan.found != 4 || scan.pair[0][0] != 20 || scan.pair[3][0] != 60 ||
	    scan.pair[3][1] != value_of(60))
		die("scan", (int)scan.found);
	s.kind = AQ_WALK_BPLUS_REDUCE;
	run_all("reduce", &s, at, &sum, sizeof(sum));
	if (sum.count != 4 || sum.min != value_of(20) ||
	    sum.max != value_of(60) ||
	    sum.sum !=
		    value_of(20) + value_of(30) + value_of(40) + value_of(60))
		die("reduce", (int)sum.count);
}

static void others(void)
{
	struct aq_walk_shape s = {.kind = AQ_WALK_SKIP_FIND,
				  .key_at = AT(key),
				  .key_bytes = 8,
				  .value_at = AT(value),
				  .value_bytes = 8,
				  .next_at = AT(level),
				  .levels = LEVELS};
	struct node head = {0}, low = {0}, high = {0};
	struct find pad = {.key = 0x21};
	uint64_t at = 0;

	for (uint64_t key = 9; key > 0; key--) {
		struct node n = {.key = key, .value = value_of(key)};

		n.level[0] = at;
		n.level[1] = key % 4 == 1 ? head.level[1] : 0;
		at = put(&n);
		if (key % 4 == 1)
			head.level[1] = at;
	}
	head.level[0] = at;
	run_find("skip", &s, put(&head), 7, 7);

	low.value = value_of(0x21);
	high.slot[1] = put(&low);
	head = (struct node){0};
	head.slot[2] = put(&high);
	s = (struct aq_walk_shape){.kind = AQ_WALK_RADIX_FIND,
				   .key_bytes = 1,
				   .value_at = AT(value),
				   .value_bytes = 8,
				   .child_at = AT(slot),
				   .child_stride = 8,
				   .fanout = RADIX};
	run_all("radix", &s, put(&head), &pad, sizeof(pad));
	if (pad.found != 1 || pad.value != value_of(0x21))
		die("radix", -ENOENT);
}

static int every(void)
{
	lists();
	trees();
	btrees();
	others();
	return 0;
}

/* ---- what goes wrong ----------------------------------------------------- */

static void expect_error(const char *what, uint64_t start, uint32_t iterations,
			 int want, const char *words)
{
	static const uint32_t flags[] = {AQ_WALK_HERE, AQ_WALK_THERE};
	const struct aq_walk_shape s = list_shape();

	for (unsigned i = 0; i < 2; i++) {
		const struct aq_walk_options o = {.flags = flags[i],
						  .iterations = iterations};
		struct find pad = {.key = 1000};
		struct aq_walk_result r;
		struct aq_walk *walk;
		int err;

		must(what, aq_walk_make(rack, &s, &o, &walk));
		err = aq_walk_run(walk, region, start, &pad, sizeof(pad), &r);
		if (err != want || r.err != want ||
		    !strstr(aq_last_error(), words))
			die(what, err);
		printf("%s: %s\n", what, aq_last_error());
		aq_walk_close(walk);
	}
}

static int bad(void)
{
	uint64_t last = room, first;
	struct node n = {.key = 5};

	/* The list is written from its end; that leads to its beginning. */
	first = make_list(3, 0);
	n.next = first;
	put_at(last, &n);
	expect_error("circle", first, 1000, -ELOOP, "within 1000 nodes");
	expect_error("wild", make_list(2, 1ull << 40), 0, -EFAULT,
		     "0x10000000000 leads out of the region");
	expect_error("past the end", 1ull << 63, 0, -EFAULT,
		     "leads out of the region");
	expect_error("stripe", make_list(2, 7 * PAGE - 8), 0, -EFAULT,
		     "crosses a stripe");
	return 0;
}

/* The region is resized and deleted by others while it is open here. */
static int changes(const char *name)
{
	const struct aq_walk_options o = {.flags = AQ_WALK_THERE};
	const struct aq_walk_shape s = list_shape();
	uint64_t first = make_list(LIST_NODES, 0);
	struct find pad = {.key = LIST_NODES};
	struct aq_region *other;
	struct aq_walk *walk;
	int err;

	must("make", aq_walk_make(rack, &s, &o, &walk));
	must("run", aq_walk_run(walk, region, first, &pad, sizeof(pad), NULL));
	must("open", aq_region_open(rack, name, 0, &other));
	must("resize", aq_region_resize(other, 1 << 20));
	pad = (struct find){.key = LIST_NODES};
	must("resized",
	     aq_walk_run(walk, region, first, &pad, sizeof(pad), NULL));
	if (pad.value != value_of(LIST_NODES))
		die("resized", -EBADMSG);
	must("delete", aq_region_delete(rack, name));
	err = aq_walk_run(walk, region, first, &pad, sizeof(pad), NULL);
	if (err != -ESTALE)
		die("deleted", err);
	printf("%s\n", aq_last_error());
	aq_region_close(other);
	aq_walk_close(walk);
	return 0;
}

/* Runs, waits for a line, and says what became of it. */
static int lost(const char *name)
{
	const struct aq_walk_options o = {.flags = AQ_WALK_THERE};
	const struct aq_walk_shape s = list_shape();
	uint64_t first = make_list(LIST_NODES, 0);
	struct find pad = {.key = LIST_NODES};
	struct aq_walk *walk;
	int err;

	must("make", aq_walk_make(rack, &s, &o, &walk));
	must("run", aq_walk_run(walk, region, first, &pad, sizeof(pad), NULL));
	puts("ready");
	fflush(stdout);
	(void)getchar();
	err = aq_walk_run(walk, region, first, &pad, sizeof(pad), NULL);
	printf("%s %s\n", strerrorname_np(-err), aq_last_error());
	fflush(stdout);
	(void)getchar();
	/* The node is back, without its memory and its programs. */
	aq_region_close(region);
	must("create", aq_region_create(rack, name, 1 << 20, NULL, &region));
	room = PAGE;
	first = make_list(LIST_NODES, 0);
	pad = (struct find){.key = LIST_NODES};
	err = aq_walk_run(walk, region, first, &pad, sizeof(pad), NULL);
	printf("%d %llu\n", err, (unsigned long long)pad.found);
	aq_walk_close(walk);
	return 0;
}

/* Walks in a circle, as many as there is room for. */
struct held {
	struct aq_walks *walks;
	struct aq_walk *walk;
	uint64_t first;
	struct find pad[HELD];
};

static int hold_one(struct held *h, struct find *pad)
{
	*pad = (struct find){.key = 1000};
	return aq_walks_submit(h->walks, h->walk, region, h->first, pad,
			       sizeof(*pad), pad);
}

static void hold_all(struct held *h)
{
	const struct aq_walk_options o = {.flags = AQ_WALK_THERE,
					  .iterations = UINT32_MAX};
	const struct aq_walk_shape s = list_shape();
	struct node n = {.key = 5};
	uint64_t last = room;

	h->first = make_list(3, 0);
	n.next = h->first;
	put_at(last, &n);
	must("make", aq_walk_make(rack, &s, &o, &h->walk));
	must("open", aq_walks_open(rack, HELD, &h->walks));
	for (unsigned i = 0; i < HELD; i++)
		must("submit", hold_one(h, &h->pad[i]));
	if (hold_one(h, &h->pad[0]) != -EAGAIN)
		die("one too many", 0);
	puts("ready");
	fflush(stdout);
}

/* Until all of them have ended with that error; without one, until it is
 * killed. */
static int hold(int want)
{
	struct aq_walk_result done[HELD];
	struct held h = {0};
	unsigned left = HELD;

	hold_all(&h);
	while (left) {
		int ended = aq_walks_poll(h.walks, done, HELD);

		for (int i = 0; i < ended; i++) {
			int err = done[i].err;

			/* The deadline, on a machine that is slow. */
			if (err == -ETIMEDOUT)
				err = hold_one(&h, done[i].user);
			if (err && err != want)
				die("a walk ended", err);
			left -= err != 0;
		}
		(void)usleep(1000);
	}
	printf("%s\n", aq_last_error());
	aq_walks_close(h.walks);
	aq_walk_close(h.walk);
	return 0;
}

/* The image of the list's walk, and a list to try it on. */
static int image(const char *path)
{
	const struct aq_walk_shape s = list_shape();
	struct aq_walk *walk;
	const void *bytes;
	size_t len;
	FILE *f = fopen(path, "w");

	must("make", aq_walk_make(rack, &s, NULL, &walk));
	bytes = aq_walk_image(walk, &len);
	if (!f || fwrite(bytes, 1, len, f) != len || fclose(f))
		die(path, -errno);
	printf("%llu\n", (unsigned long long)make_list(LIST_NODES, 0));
	aq_walk_close(walk);
	return 0;
}

/* ---- walks in flight ----------------------------------------------------- */

struct flight {
	struct find pad;
	uint64_t start_ms;
};

static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void set_off(struct aq_walks *walks, struct aq_walk *walk,
		    uint64_t first, struct flight *f)
{
	f->pad = (struct find){.key = LIST_NODES};
	f->start_ms = now_ms();
	must("submit", aq_walks_submit(walks, walk, region, first, &f->pad,
				       sizeof(f->pad), f));
}

/* Right bytes, or an error that says that something is gone; in time. */
static void judge(const struct aq_walk_result *r)
{
	const struct flight *f = r->user;
	uint64_t took_ms = now_ms() - f->start_ms;

	if (r->err && r->err != -EHOSTDOWN && r->err != -ETIMEDOUT &&
	    r->err != -ESTALE)
		die("an error", r->err);
	if (!r->err && (f->pad.value != value_of(LIST_NODES) ||
			f->pad.found != 1 || r->iterations != LIST_NODES))
		die("wrong bytes", r->err);
	/* Looking for what was lost takes some time as well. */
	if (took_ms > 3ull * aq_rack_deadline(rack))
		die("late", (int)took_ms);
}

/* Keeps walks under way, and says at each line what became of those that ended
 * since the last one; an error ends what is not under way. */
static int flight(void)
{
	const struct aq_walk_options o = {.flags = AQ_WALK_THERE |
						   AQ_WALK_CROSS_SWITCH};
	const struct aq_walk_shape s = list_shape();
	struct flight flights[FLIGHT];
	struct aq_walk_result done[FLIGHT];
	uint64_t first = make_list(LIST_NODES, 0), right = 0, carried = 0;
	unsigned failed = 0, lines = 0;
	struct aq_walks *walks;
	struct aq_walk *walk;

	must("make", aq_walk_make(rack, &s, &o, &walk));
	must("open", aq_walks_open(rack, FLIGHT, &walks));
	for (unsigned i = 0; i < FLIGHT; i++)
		set_off(walks, walk, first, &flights[i]);
	puts("ready");
	while (aq_walks_pending(walks)) {
		struct pollfd in = {.fd = 0, .events = POLLIN};
		int n = aq_walks_poll(walks, done, FLIGHT);
		char line[16];

		for (int i = 0; i < n; i++) {
			judge(&done[i]);
			right += !done[i].err;
			carried += done[i].carried;
			if (done[i].err && failed++ == 0)
				printf("%s %s\n", strerrorname_np(-done[i].err),
				       aq_last_error());
			if (!failed && lines < 3)
				set_off(walks, walk, first, done[i].user);
		}
		fflush(stdout);
		if (poll(&in, 1, n ? 0 : 1) == 1 &&
		    fgets(line, sizeof(line), stdin)) {
			printf("%llu right, %llu carried\n",
			       (unsigned long long)right,
			       (unsigned long long)carried);
			fflush(stdout);
			right = carried = 0;
			lines++;
		}
	}
	aq_walks_close(walks);
	aq_walk_close(walk);
	return 0;
}

/* ---- what is written before a walk begins ---------------------------------
 */

enum {
	AFTERS = 200,
};

/* A walk from `start` on, when the node at `at` leads to the first or to the
 * second list: it must have been written before. */
static void run_after(struct aq_walk *walk, uint64_t start, uint64_t at,
		      const uint64_t list[2], unsigned turn, bool is_one)
{
	const struct node n = {.key = 5000 + turn, .next = list[turn % 2]};
	const struct aq_walk_write write = {
		.at = at, .bytes = &n, .len_bytes = sizeof(n)};
	struct find pad = {.key = turn % 2 ? 1 : 1 + LIST_NODES / 2};
	struct aq_walk_result r;

	must("after", aq_walk_run_after(walk, region, &write, start, &pad,
					sizeof(pad), &r));
	if (pad.found != 1 || pad.value != value_of(pad.key) ||
	    r.iterations != (start == at ? 1 : 2) + pad.key ||
	    (turn % 2 && r.at != list[1]))
		die("after", (int)turn);
	/* The first one may have to bring the program. */
	if (is_one && turn && r.requests > 1)
		die("requests", (int)r.requests);
}

static void refuse_after(struct aq_walk *walk, uint64_t first)
{
	static const uint8_t many[AQ_WALK_WRITE_MAX + 1];
	struct aq_walk_write write = {
		.at = first, .bytes = many, .len_bytes = sizeof(many)};
	struct find pad = {.key = 1};
	int err = aq_walk_run_after(walk, region, &write, first, &pad,
				    sizeof(pad), NULL);

	if (err != -EINVAL)
		die("too much", err);
	write.at = UINT64_MAX - 3;
	write.len_bytes = 8;
	err = aq_walk_run_after(walk, region, &write, first, &pad, sizeof(pad),
				NULL);
	if (err != -EFAULT)
		die("outside", err);
}

static void try_after(uint32_t flags, bool is_one)
{
	const struct aq_walk_options o = {.flags = flags};
	const struct aq_walk_shape s = list_shape();
	const uint64_t list[2] = {make_list(LIST_NODES, 0),
				  make_list(LIST_NODES / 2, 0)};
	const struct node nothing = {.key = 6000};
	uint64_t at = put(&nothing), next = put(&nothing);
	const struct node leads = {.key = 6001, .next = next};
	struct aq_walk *walk;

	put_at(at, &leads);
	must("make", aq_walk_make(rack, &s, &o, &walk));
	for (unsigned i = 0; i < AFTERS; i++)
		run_after(walk, next, next, list, i,
			  is_one && flags == AQ_WALK_THERE);
	/* The node is the second: in a striped region, of another node. */
	for (unsigned i = 0; i < AFTERS; i++)
		run_after(walk, at, next, list, i,
			  is_one && flags == AQ_WALK_THERE);
	refuse_after(walk, list[0]);
	aq_walk_close(walk);
}

static int after(const char *name, bool is_one)
{
	const struct aq_walk_shape s = list_shape();
	const struct node n = {.key = 1};
	const struct aq_walk_write write = {
		.at = PAGE, .bytes = &n, .len_bytes = sizeof(n)};
	struct aq_region *closed;
	struct find pad = {.key = 1};
	struct aq_walk *walk;
	int err;

	try_after(AQ_WALK_THERE, is_one);
	try_after(AQ_WALK_HERE, is_one);
	must("make", aq_walk_make(rack, &s, NULL, &walk));
	must("region",
	     aq_region_open(rack, name, AQ_REGION_READ_ONLY, &closed));
	err = aq_walk_run_after(walk, closed, &write, PAGE, &pad, sizeof(pad),
				NULL);
	if (err != -EACCES)
		die("read-only", err);
	aq_walk_close(walk);
	aq_region_close(closed);
	return 0;
}

int main(int argc, char **argv)
{
	int code = 2;

	if (argc < 3)
		return code;
	must("rack", aq_rack_open(NULL, &rack));
	/* Windows are never mapped; nor are they the switch's. */
	must("region",
	     aq_region_open(rack, argv[2],
			    getenv("WALK_WHOLE") ? 0 : AQ_REGION_REVOCABLE,
			    &region));
	if (strcmp(argv[1], "every") == 0)
		code = every();
	else if (strcmp(argv[1], "bad") == 0)
		code = bad();
	else if (strcmp(argv[1], "changes") == 0)
		code = changes(argv[2]);
	else if (strcmp(argv[1], "lost") == 0)
		code = lost(argv[2]);
	else if (strcmp(argv[1], "hold") == 0)
		code = hold(0);
	else if (strcmp(argv[1], "deleted") == 0)
		code = hold(-ESTALE);
	else if (strcmp(argv[1], "killed") == 0)
		code = hold(-EHOSTDOWN);
	else if (strcmp(argv[1], "flight") == 0)
		code = flight();
	else if (strcmp(argv[1], "after") == 0 && argc > 3)
		code = after(argv[2], strcmp(argv[3], "one") == 0);
	else if (strcmp(argv[1], "image") == 0 && argc > 3)
		code = image(argv[3]);
	aq_region_close(region);
	aq_rack_close(rack);
	return code;
}
