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
#include "base/json_out.h"
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
	const struct figure *figure;
	bool messages_given;
};

static void help(void)
{
	puts("usage: aquifer sim edm [--figure NAME] [OPTION...]\n"
	     "Simulates the EDM memory fabric and its rivals. Without "
	     "--figure: one run.\n"
	     "  --figure NAME      make a figure or table:");
	for (const struct figure *f = edm_figures.figures; f->name; f++)
		printf("      %-10s %s\n", f->name, f->title);
	puts("  --full             figures at full length (minutes)\n"
	     "  --long-messages    messages of application runs in figures\n"
	     "  --seeds N          runs of every point, with 95 % interval "
	     "(1)\n"
	     "  --jobs N           threads (all processors)\n"
	     "  --out DIR          write a picture there, as SVG\n"
	     "  --pcap FILE        frames for the figure of that name\n"
	     "  --detail           print all that is known of each point\n"
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

/* An option of the command itself with a value; USAGE + 1: not one of them. */
static int own_option(struct command *cmd, const char *name, const char *value)
{
	uint64_t n;
	int rc;

	if (!strcmp(name, "figure")) {
		cmd->figure = figure_by_name(&edm_figures, value);
		return cmd->figure ? GO
				   : wrong("--figure: there is no figure '%s'",
					   value);
	}
	if (!strcmp(name, "out")) {
		cmd->o.f.out = value;
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
		cmd->o.f.jobs = (unsigned)n;
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
		cmd->o.f.json = true;
	else if (!strcmp(name, "detail"))
		cmd->o.f.detail = true;
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

static const struct figure_column run_columns[] = {
	EDM_COLUMN(job[0].mean.mean_ns, "mean_ns", 2),
	EDM_COLUMN(job[0].mean_ns_ci, "mean_ns_ci", 2),
	EDM_COLUMN(job[0].mean.p50_ns, "p50_ns", 1),
	EDM_COLUMN(job[0].mean.p99_ns, "p99_ns", 1),
	EDM_COLUMN(job[0].mean.p999_ns, "p99.9_ns", 1),
	EDM_COLUMN(job[0].mean.own, "own", 4),
	EDM_COLUMN(job[0].own_ci, "own_ci", 4),
	EDM_COLUMN(job[0].mean.common, "common", 4),
	EDM_COLUMN(job[0].common_ci, "common_ci", 4),
	EDM_COLUMN(job[0].mean.write_own, "write_own", 4),
	EDM_COLUMN(job[0].mean.read_own, "read_own", 4),
	EDM_COLUMN(job[0].mean.payload_load, "payload_load", 3),
	EDM_COLUMN(job[0].mean.measured, "measured", 0),
	EDM_COLUMN(unfinished, "undelivered", 0),
	EDM_COLUMN(job[0].mean.nulls, "null_reads", 0),
	EDM_COLUMN(job[0].mean.horizon_ns, "horizon_ns", 0),
	EDM_COLUMN(job[0].mean.in_flight_max, "in_flight_max", 0),
	EDM_COLUMN(job[0].mean.egress_blocks_max, "queue_max_blocks", 0),
	EDM_COLUMN(job[0].mean.grants, "grants", 0),
	EDM_COLUMN(job[0].mean.drops, "drops", 0),
	EDM_COLUMN(job[0].mean.marks, "marks", 0),
	EDM_COLUMN(job[0].mean.pauses, "pauses", 0),
	EDM_COLUMN(job[0].mean.timeouts, "timeouts", 0),
	EDM_COLUMN(job[0].mean.duplicates, "copies", 0),
	EDM_COLUMN(job[0].mean.events, "events", 0),
	EDM_COLUMN(number[0], "events_per_s", 0),
	{.name = NULL},
};

static int print_run(const struct edm_row *row, bool is_json)
{
	struct json_out j;
	char cell[64];

	if (!is_json) {
		for (const struct figure_column *c = run_columns; c->name; c++)
			printf("%16s  %14s\n", c->name,
			       figure_cell(c, row, cell, sizeof(cell)));
		return 0;
	}
	json_out_init(&j, stdout);
	json_out_object(&j, NULL);
	json_out_string(&j, "sim", "edm");
	json_out_array(&j, "run");
	for (const struct figure_column *c = run_columns; c->name; c++) {
		json_out_object(&j, NULL);
		json_out_string(&j, "measure", c->name);
		figure_cell_json(&j, "value", c, row);
		json_out_close(&j);
	}
	json_out_close(&j);
	json_out_close(&j);
	return json_out_end(&j);
}

/* One run with everything that was measured. */
static int single(const struct command *cmd)
{
	struct edm_jobs j = {.threads = cmd->o.f.jobs,
			     .seeds = cmd->o.seeds,
			     .progress = cmd->o.progress,
			     .title = "run"};
	struct edm_row row = {.jobs = 1};
	int rc;

	(void)edm_jobs_add(&j, &cmd->o.base);
	rc = edm_jobs_run(&j);
	if (!rc) {
		const struct edm_point *p = &j.job[0].mean;

		row.job[0] = j.job[0];
		row.unfinished = p->measured - p->completed;
		row.number[0] = (double)p->events / p->wall_s;
		rc = print_run(&row, cmd->o.f.json);
	}
	edm_jobs_release(&j);
	return rc;
}

int sim_edm_cmd(int argc, char **argv)
{
	struct command cmd = {
		.o = {.seeds = 1, .progress = true},
	};
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	int rc;

	cmd.o.f.jobs = processors > 0 ? (unsigned)processors : 1;
	edm_config_init(&cmd.o.base);
	rc = parse(&cmd, argc, argv);
	if (rc != GO)
		return rc;
	if (cmd.messages_given)
		cmd.o.messages = cmd.o.base.messages;
	if (cmd.o.f.out && !cmd.figure)
		return wrong("--out: there is no picture of one run");
	if (edm_config_check(&cmd.o.base))
		return wrong("%s", error_last());
	rc = cmd.figure ? figure_make(&edm_figures, cmd.figure, &cmd.o.f)
			: single(&cmd);
	if (rc)
		fprintf(stderr, "aquifer: sim edm: %s\n",
			*error_last() ? error_last() : error_text(rc));
	return rc ? FAILED : OK;
}
