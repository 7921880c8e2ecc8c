/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim edm`: a figure, or one run with everything that was measured. */
#include "edm.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "edm_figure.h"
#include "edm_options.h"

enum {
	OK = 0,
	FAILED = 1,
	USAGE = 2,
	GO = -1,
};

struct command {
	struct edm_figure_options o;
	const struct edm_figure *figure;
	bool json;
	bool messages_given;
};

static void help(void)
{
	puts("usage: aquifer sim edm [--figure NAME] [OPTION...]\n"
	     "Simulates the EDM memory fabric and its rivals. Without "
	     "--figure: one run.\n"
	     "  --figure NAME      make a figure or table:");
	for (const struct edm_figure *f = edm_figures; f->name; f++)
		printf("      %-10s %s\n", f->name, f->what);
	puts("  --full             figures at full length (minutes)\n"
	     "  --long-messages    messages of application runs in figures\n"
	     "  --seeds N          runs of every point, with 95 % interval "
	     "(1)\n"
	     "  --jobs N           threads (all processors)\n"
	     "  --out DIR          write SVG charts there\n"
	     "  --pcap FILE        frames for the figure of that name\n"
	     "  --json             print one JSON object\n"
	     "  --quiet            no progress on stderr\n"
	     "of every run:");
	edm_options_help(stdout);
}

static int PRINTF(1, 2) wrong(const char *fmt, ...)
{
	va_list ap;

	fputs("aquifer: sim edm: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs("; see 'aquifer sim edm --help'\n", stderr);
	return USAGE;
}

static int count_parse(const char *name, const char *text, uint64_t max,
		       uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	if (end == text || *end || errno || *text == '-' || !*out ||
	    *out > max) {
		fprintf(stderr,
			"aquifer: sim edm: --%s: '%s' is not in 1..%llu\n",
			name, text, (unsigned long long)max);
		return USAGE;
	}
	return GO;
}

static int figure_find(struct command *cmd, const char *name)
{
	for (const struct edm_figure *f = edm_figures; f->name; f++) {
		if (!strcmp(f->name, name)) {
			cmd->figure = f;
			return GO;
		}
	}
	return wrong("--figure: there is no figure '%s'", name);
}

/* An option of the command itself with a value; USAGE + 1: not one of them. */
static int own_option(struct command *cmd, const char *name, const char *value)
{
	uint64_t n;
	int rc;

	if (!strcmp(name, "figure"))
		return figure_find(cmd, value);
	if (!strcmp(name, "out")) {
		cmd->o.out = value;
		return access(value, W_OK)
			       ? wrong("--out: cannot write to '%s'", value)
			       : GO;
	}
	if (!strcmp(name, "pcap")) {
		cmd->o.pcap = value;
		return GO;
	}
	if (!strcmp(name, "seeds")) {
		rc = count_parse(name, value, 64, &n);
		cmd->o.seeds = (uint32_t)n;
		return rc;
	}
	if (!strcmp(name, "jobs")) {
		rc = count_parse(name, value, 64, &n);
		cmd->o.threads = (uint32_t)n;
		return rc;
	}
	if (!strcmp(name, "long-messages"))
		return count_parse(name, value, UINT32_MAX,
				   &cmd->o.long_messages);
	return USAGE + 1;
}

static bool own_flag(struct command *cmd, const char *name)
{
	if (!strcmp(name, "json"))
		cmd->json = true;
	else if (!strcmp(name, "full"))
		cmd->o.full = true;
	else if (!strcmp(name, "quiet"))
		cmd->o.progress = false;
	else
		return false;
	return true;
}

static int parse(struct command *cmd, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i], *value = NULL;
		bool takes = true, known;
		char copy[64];
		const char *equals;
		int rc;

		if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
			help();
			return OK;
		}
		if (strncmp(name, "--", 2))
			return wrong("does not understand '%s'", name);
		name += 2;
		equals = strchr(name, '=');
		if (equals && (size_t)(equals - name) < sizeof(copy)) {
			memcpy(copy, name, (size_t)(equals - name));
			copy[equals - name] = 0;
			name = copy;
			value = equals + 1;
		}
		if (!value && own_flag(cmd, name))
			continue;
		known = edm_option_known(name, &takes);
		if (takes && !value) {
			if (i + 1 == argc)
				return wrong("--%s: needs a value, or is no "
					     "option",
					     name);
			value = argv[++i];
		}
		rc = known ? USAGE + 1 : own_option(cmd, name, value);
		if (rc == GO)
			continue;
		if (!known)
			return rc == USAGE
				       ? rc
				       : wrong("there is no option --%s", name);
		if (edm_option_set(&cmd->o.base, name, value))
			return wrong("%s", error_last());
		cmd->messages_given |= !strcmp(name, "messages");
	}
	return GO;
}

static void value_add(struct edm_table *t, const char *what, double value,
		      int decimals)
{
	edm_table_text(t, "%s", what);
	edm_table_number(t, value, decimals);
}

static int single(struct command *cmd)
{
	static const char *const head[] = {"measure", "value", NULL};
	struct edm_jobs j;
	struct edm_table t;
	const struct edm_point *p;
	int rc;

	edm_figure_jobs(&cmd->o, "run", &j);
	(void)edm_jobs_add(&j, &cmd->o.base);
	rc = edm_jobs_run(&j);
	if (rc)
		goto out;
	p = &j.job[0].mean;
	edm_table_init(&t, "run", edm_proto_name(cmd->o.base.proto), head);
	value_add(&t, "mean_ns", p->mean_ns, 2);
	value_add(&t, "mean_ns_ci", j.job[0].mean_ns_ci, 2);
	value_add(&t, "p50_ns", p->p50_ns, 1);
	value_add(&t, "p99_ns", p->p99_ns, 1);
	value_add(&t, "p99.9_ns", p->p999_ns, 1);
	value_add(&t, "own", p->own, 4);
	value_add(&t, "own_ci", j.job[0].own_ci, 4);
	value_add(&t, "common", p->common, 4);
	value_add(&t, "common_ci", j.job[0].common_ci, 4);
	value_add(&t, "write_own", p->write_own, 4);
	value_add(&t, "read_own", p->read_own, 4);
	value_add(&t, "payload_load", p->payload_load, 3);
	value_add(&t, "measured", (double)p->measured, 0);
	value_add(&t, "undelivered", (double)(p->measured - p->completed), 0);
	value_add(&t, "null_reads", (double)p->nulls, 0);
	value_add(&t, "horizon_ns", p->horizon_ns, 0);
	value_add(&t, "in_flight_max", (double)p->in_flight_max, 0);
	value_add(&t, "queue_max_blocks", (double)p->egress_blocks_max, 0);
	value_add(&t, "grants", (double)p->grants, 0);
	value_add(&t, "drops", (double)p->drops, 0);
	value_add(&t, "marks", (double)p->marks, 0);
	value_add(&t, "pauses", (double)p->pauses, 0);
	value_add(&t, "timeouts", (double)p->timeouts, 0);
	value_add(&t, "copies", (double)p->duplicates, 0);
	value_add(&t, "events", (double)p->events, 0);
	value_add(&t, "events_per_s", (double)p->events / p->wall_s, 0);
	edm_figure_emit(&cmd->o, &t);
out:
	edm_jobs_release(&j);
	return rc;
}

int sim_edm_cmd(int argc, char **argv)
{
	struct command cmd = {
		.o = {.threads = 1, .seeds = 1, .progress = true},
	};
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct json_out json;
	int rc;

	cmd.o.threads = processors > 0 ? (uint32_t)processors : 1;
	edm_config_init(&cmd.o.base);
	rc = parse(&cmd, argc, argv);
	if (rc != GO)
		return rc;
	if (cmd.messages_given)
		cmd.o.messages = cmd.o.base.messages;
	if (cmd.o.out && !(cmd.figure && cmd.figure->charts))
		return wrong("--out: there is no chart of this");
	if (edm_config_check(&cmd.o.base))
		return wrong("%s", error_last());
	if (cmd.json) {
		json_out_init(&json, stdout);
		json_out_object(&json, NULL);
		json_out_string(&json, "sim", "edm");
		cmd.o.json = &json;
	}
	rc = cmd.figure ? cmd.figure->make(&cmd.o) : single(&cmd);
	if (rc)
		fprintf(stderr, "aquifer: sim edm: %s\n",
			*error_last() ? error_last() : error_text(rc));
	if (cmd.json) {
		json_out_close(&json);
		rc = json_out_end(&json) ? -EIO : rc;
	}
	return rc ? FAILED : OK;
}
