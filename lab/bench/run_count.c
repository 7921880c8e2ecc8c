/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Far bytes of one run, counted twice: by the pager, which says how many pages
 * it asked for, and by the memory node's NIC, which says how many bytes it sent
 * and received. Nothing is prefetched here, so each page that was loaded is a
 * fault that had to wait for it, and both counts are the same to the byte.
 *
 * A page is one packet on the cable. All other packets of a direction have the
 * same length, so frames and bytes together say how many carried a page.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/counter.h"
#include "base/rundir.h"
#include "place.h"
#include "run_bench.h"
#include "wire/page_wire.h"
#include "wire/wire.h"

enum {
	PAGE_BYTES = 4096,
	REPORT_MAX = 4096,
	HEAD = WIRE_ETH_BYTES + WIRE_IP4_BYTES + WIRE_UDP_BYTES +
	       WIRE_BTH_BYTES + WIRE_ICRC_BYTES,
	AETH = 4,
	RETH = 16,
	IMM = 4,
};

struct nic_bytes {
	uint64_t pid; /* of the node */
	uint64_t tx_frames, tx_bytes, rx_frames, rx_bytes;
};

/* One direction: a packet without a page, and what a page adds to one. */
struct shape {
	uint32_t plain, page;
};

/* READs are answered by a page behind an AETH, WRITEs by an AETH alone; both
 * are asked for with an RETH. */
static const struct shape static_out = {HEAD + AETH, PAGE_BYTES};
static const struct shape static_in = {HEAD + RETH, PAGE_BYTES};
/* A load is answered by a WRITE with an immediate value, a store, which comes
 * with one, by nothing but such a value. Acknowledgements are as long. */
static const struct shape chain_out = {HEAD + IMM, RETH + PAGE_BYTES};
static const struct shape chain_in = {HEAD + IMM, PAGE_BYTES};
STATIC_ASSERT((int)AETH == (int)IMM, "acknowledgements and answers");

/* ---- the node's NIC ----------------------------------------------------- */

static int read_node(const char *path, void *ctx)
{
	struct nic_bytes *out = ctx;
	const struct {
		const char *name;
		uint64_t *value;
	} want[] = {
		{"nic.tx_frames", &out->tx_frames},
		{"nic.tx_bytes", &out->tx_bytes},
		{"nic.rx_frames", &out->rx_frames},
		{"nic.rx_bytes", &out->rx_bytes},
	};
	struct counter_snapshot *snap;
	struct counter_view v;
	unsigned cursor = 0;

	if (counter_snapshot_read(path, &snap) < 0)
		return 0;
	while (counter_snapshot_pid(snap) == out->pid &&
	       counter_snapshot_next(snap, &cursor, &v))
		for (size_t i = 0; i < ARRAY_LEN(want); i++)
			if (strcmp(v.name, want[i].name) == 0)
				*want[i].value += v.value;
	counter_snapshot_free(snap);
	return 0;
}

static int look(struct nic_bytes *out)
{
	const char *rack = getenv("AQUIFER_RACK_NAME");
	char path[RUNDIR_PATH_MAX];
	int err = rundir_path(rack ? rack : "", path);

	if (err)
		return err;
	*out = (struct nic_bytes){.pid = (uint64_t)place_pid(path, "m0")};
	return out->pid ? counter_dir_each(path, read_node, out) : -ESRCH;
}

/* Bytes of pages; UINT64_MAX: there was something else. */
static uint64_t pages_of(const struct shape *s, uint64_t frames, uint64_t bytes)
{
	uint64_t more = bytes - frames * s->plain;

	return more % s->page ? UINT64_MAX : more / s->page * PAGE_BYTES;
}

/* ---- the pager's report ------------------------------------------------- */

int run_report_read(FILE *f, struct run_counted *out)
{
	char line[REPORT_MAX];
	json_t *report = NULL;

	*out = (struct run_counted){0};
	rewind(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, "{\"local\"", 8) == 0) {
			json_decref(report);
			report = json_loads(line, 0, NULL);
		}
	if (!report)
		return -EIO;
	const struct {
		const char *name;
		uint64_t *value;
	} want[] = {
		{"faults", &out->faults},
		{"loads", &out->loads},
		{"prefetched", &out->prefetched},
		{"first_touches", &out->first_touches},
		{"second_chances", &out->second_chances},
		{"stored", &out->stored},
		{"given_back", &out->given_back},
		{"far_peak", &out->far_pages},
		{"heap_peak", &out->heap_bytes},
	};
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		*want[i].value = (uint64_t)json_integer_value(
			json_object_get(report, want[i].name));
	json_decref(report);
	out->far_pages /= PAGE_BYTES; /* it is reported in bytes */
	return 0;
}

/* ---- both --------------------------------------------------------------- */

static void count_static(const struct nic_bytes *n, struct run_counted *out)
{
	out->far_in_bytes = pages_of(&static_out, n->tx_frames, n->tx_bytes);
	out->far_out_bytes = pages_of(&static_in, n->rx_frames, n->rx_bytes);
}

/* Messages that call for a page, or give one back, are longer than others
 * without a page. */
static void count_chain(const struct nic_bytes *n, struct run_counted *out)
{
	uint64_t calls =
		out->loads * (sizeof(struct page_chain_load) - IMM) +
		out->given_back * (sizeof(struct page_chain_call) - IMM);

	out->far_in_bytes = pages_of(&chain_out, n->tx_frames, n->tx_bytes);
	out->far_out_bytes =
		pages_of(&chain_in, n->rx_frames, n->rx_bytes - calls);
}

int run_count(const struct run_work *w, enum run_place place,
	      uint64_t local_bytes, struct run_counted *out)
{
	struct nic_bytes before, after;
	FILE *report = tmpfile();
	uint64_t ns;
	int err = report ? look(&before) : -errno;

	*out = (struct run_counted){0};
	if (!err)
		err = run_work_spawn_counted(w, place, local_bytes,
					     fileno(report), &ns);
	if (!err)
		err = run_report_read(report, out);
	if (!err)
		err = look(&after);
	if (report)
		(void)fclose(report);
	if (err)
		return err;
	after.tx_frames -= before.tx_frames;
	after.tx_bytes -= before.tx_bytes;
	after.rx_frames -= before.rx_frames;
	after.rx_bytes -= before.rx_bytes;
	if (place == RUN_PLACE_CHAIN)
		count_chain(&after, out);
	else
		count_static(&after, out);
	return 0;
}
