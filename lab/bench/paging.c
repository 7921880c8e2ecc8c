/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer bench paging`: pages over each port, then programs on them. */
#include <errno.h>
#include <string.h>

#include "paging_bench.h"
#include "run_bench.h"
#include "users.h"

/* Over which port a ratio of the pages is judged. */
static const struct {
	const char *name;
	enum paging_port port;
} judged[] = {
	{"load_rate_vs_read4k", PAGING_UDP},
	{"load_lat_vs_read4k", PAGING_SHM},
	{"mapped_rate_vs_write4k", PAGING_SHM},
	{"mapped_lat_vs_write4k", PAGING_SHM},
	{"unmapped_lat_vs_write4k", PAGING_SHM},
	{"utilisation", PAGING_SHM},
	{"engine_cpu_chain_vs_two_sided", PAGING_SHM},
	/* Each of the one before it, in the same round. */
	{"with_decision_vs_naive", PAGING_SHM},
	{"with_address_vs_decision", PAGING_SHM},
	{"with_recycle_vs_address", PAGING_SHM},
	{"with_swap_vs_recycle", PAGING_SHM},
};

static const struct bench_ratio ratios[] = {
	BENCH_NUMBER("load_rate_vs_read4k",
		     "pages loaded per second / READs, over UDP", "pages",
		     ">=", 0.92),
	BENCH_NUMBER("load_lat_vs_read4k", "time to load a page / READ",
		     "pages", "<=", 1.5),
	BENCH_NUMBER("mapped_rate_vs_write4k",
		     "mapped pages stored per second / WRITEs", "pages", NULL,
		     0),
	BENCH_NUMBER("mapped_lat_vs_write4k",
		     "time to store a mapped page / WRITE", "pages", "<=", 1.5),
	BENCH_NUMBER("unmapped_lat_vs_write4k",
		     "the same, with a page frame to be found first", "pages",
		     "<=", 2.5),
	BENCH_NUMBER("utilisation",
		     "bytes used of bytes held, after stores and "
		     "invalidates at random",
		     "pages", "==", 1),
	BENCH_NUMBER("engine_cpu_chain_vs_two_sided",
		     "processor time of the node per page: chains / messages",
		     "pages", "<=", 0.8),
	BENCH_NUMBER("ablation", "the worst of the next four", "pages", "<", 1),
	BENCH_NUMBER("with_decision_vs_naive", "one optimisation / none",
		     "pages", NULL, 0),
	BENCH_NUMBER("with_address_vs_decision", "two / one", "pages", NULL, 0),
	BENCH_NUMBER("with_recycle_vs_address", "three / two", "pages", NULL,
		     0),
	BENCH_NUMBER("with_swap_vs_recycle", "all four / three", "pages", NULL,
		     0),
	BENCH_NUMBER("fault_elapsed_vs_zram",
		     "a fault through the NICs / with zram", "touches",
		     "<=", 0.75),
	BENCH_NUMBER("fault_floor_vs_zram",
		     "the least that userfaultfd costs / zram", "touches", NULL,
		     0),
	BENCH_NUMBER("fault_floor_signal_vs_zram", "the same by SIGBUS",
		     "touches", NULL, 0),
	BENCH_NUMBER("fault_elapsed_direct_vs_zram",
		     "a fault, mapped / with zram", "touches", "<=", 0.8),
	BENCH_NUMBER("fault_vs_floor",
		     "a fault through the NICs / the least that userfaultfd "
		     "costs",
		     "touches", "<=", 1.4),
	BENCH_NUMBER("fault_direct_vs_floor",
		     "a fault, mapped / the least that userfaultfd costs",
		     "touches", NULL, 0),
	BENCH_NUMBER("quicksort50_vs_local", "half of its memory far / none",
		     "programs", "<=", 1.5),
	BENCH_NUMBER("quicksort50_direct_vs_local", "the same, mapped",
		     "programs", NULL, 0),
	BENCH_NUMBER("app_chain_vs_static_worst",
		     "chains / static pages, the worst of six programs",
		     "programs", "<=", 1.15),
	BENCH_NUMBER("far_bytes_vs_faults",
		     "bytes of the node's NIC / faults that waited x page size",
		     "programs", "==", 1),
	BENCH_NUMBER("far_bytes_vs_faults_chain", "the same by chains",
		     "programs", "==", 1),
	BENCH_NUMBER("run_fault_user_vs_bench",
		     "a fault of perl and clang++ as users run them, the "
		     "worse / of touches, everything on its core",
		     "users", "<=", 1.5),
	BENCH_NUMBER("run_apps_vs_zram",
		     "ten programs, half and a quarter here / with zram, "
		     "median",
		     "users", "<=", 1),
	BENCH_NUMBER("run_apps_vs_zram_worst", "the same, the worst one",
		     "users", NULL, 0),
	BENCH_NUMBER("run_local_vs_plain",
		     "all of it here / without Aquifer, the worst of ten",
		     "users", "<=", 1.15),
	{.name = NULL},
};

static const char *unit_of(const char *name)
{
	if (strstr(name, "_vs_"))
		return "ratio";
	if (strstr(name, "utilisation"))
		return "share";
	return strstr(name, "_rate") ? "pages/s" : "ns";
}

static const char *what_of(const char *name)
{
	return strstr(name, "_vs_")	  ? "in the same round"
	       : strstr(name, "_cpu_ns_") ? "processor time per page"
	       : strstr(name, "_rate")	  ? "64 pages under way"
	       : strstr(name, "_ns")	  ? "one page at a time"
					  : "bytes used of bytes held";
}

static void add_port(struct bench *b, enum paging_port port, json_t *medians)
{
	double worst = 0;
	const char *name;
	json_t *v, *row;

	json_object_foreach(medians, name, v)
	{
		row = bench_row(b, "pages", name, json_number_value(v),
				unit_of(name), what_of(name));
		json_object_set_new(row, "port",
				    json_string(paging_port_name(port)));
	}
	for (size_t i = 0; i < ARRAY_LEN(judged); i++) {
		v = json_object_get(medians, judged[i].name);
		if (!v || judged[i].port != port)
			continue;
		bench_ratio_add(b, judged[i].name, json_number_value(v));
		if (strncmp(judged[i].name, "with_", 5) == 0 &&
		    json_number_value(v) > worst)
			worst = json_number_value(v);
	}
	if (worst > 0)
		bench_ratio_add(b, "ablation", worst);
}

static int measure_pages(struct bench *b)
{
	const char *only = bench_word(b, "port");
	struct paging_plan plan = {.rounds = b->rounds,
				   .window_ms = b->window_ms,
				   .pages = b->quick ? 512 : 4096};

	for (unsigned i = 0; i < PAGING_PORT_COUNT; i++) {
		enum paging_port port = (enum paging_port)i;
		const char *name = paging_port_name(port), *why;
		json_t *medians = NULL;
		int rc;

		if (only && strcmp(only, name) != 0)
			continue;
		bench_progress(b, "pages, %s", name);
		rc = paging_measure(&plan, port, &medians);
		why = json_string_value(json_object_get(medians, "error"));
		if (rc < 0)
			(void)bench_fail(b, rc, "pages over %s: %s", name,
					 why ? why : "the process died");
		else
			add_port(b, port, medians);
		json_decref(medians);
		if (rc < 0)
			return rc;
	}
	for (size_t i = 0; only && i < ARRAY_LEN(judged); i++)
		if (strcmp(only, paging_port_name(judged[i].port)) != 0)
			bench_void(b, judged[i].name, "it is judged over %s",
				   paging_port_name(judged[i].port));
	return 0;
}

static int run(struct bench *b)
{
	int err = bench_wants(b, "pages") ? measure_pages(b) : 0;
	bool programs = bench_wants(b, "programs");

	/* One port has pages only. */
	if (!err && (programs || bench_wants(b, "touches")) &&
	    !bench_word(b, "port"))
		err = run_rows(b, programs);
	if (!err && bench_wants(b, "users") && !bench_word(b, "port"))
		err = users_rows(b);
	return err;
}

static const struct bench_option options[] = {
	BENCH_WORD("port", "shm|udp|direct", "only pages, and only over this"),
	BENCH_WORD("program", "NAME", "of the group users, only this one"),
	{.name = NULL},
};
static const char *const columns[] = {"port", "bytes", "local_bytes", NULL};

const struct bench_def bench_paging = {
	.name = "paging",
	.summary = "far pages beside plain READs and WRITEs; programs on them",
	.about = "Pages of 4 KiB in far memory: loaded and stored by chains of "
		 "work requests in the\nmemory node's NIC, by its processor, "
		 "and by plain READs and WRITEs, in turns, over\nthe shared "
		 "memory cable and over UDP; and by loads and stores to mapped "
		 "memory.\nThen programs on such pages (aquifer run), beside "
		 "local memory and the kernel's\nswapping to zram and to a "
		 "file (needs root). Then ten programs of Debian as users run "
		 "them. Of these two there are 3\nrounds unless given.\n",
	.rounds = 25,
	.rounds_quick = 1,
	.window_ms = 30,
	.window_ms_quick = 10,
	.options = options,
	.ratios = ratios,
	.columns = columns,
	.run = run,
};
