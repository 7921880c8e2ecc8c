/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim SYSTEM --figure`: one command line for all figures. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/opt.h"
#include "figure.h"

enum {
	JOBS_MAX = 64,
};

static const struct opt common[] = {
	OPT_TEXT(struct figure_options, figure, "figure", "NAME",
		 "which, or all"),
	OPT_FLAG(struct figure_options, quick, "quick",
		 "few and small points, which prove nothing"),
	OPT_U32(struct figure_options, jobs, "jobs", "N", 1, JOBS_MAX,
		"points at a time"),
	OPT_TEXT(struct figure_options, out, "out", "DIR",
		 "write a picture there, as SVG, the published points beside "
		 "ours"),
	OPT_FLAG(struct figure_options, detail, "detail",
		 "print all that is known of each point"),
	OPT_FLAG(struct figure_options, json, "json",
		 "print one JSON object per figure"),
	OPT_END,
};

static void usage(const struct figure_system *s, const struct opt *options,
		  FILE *out)
{
	fprintf(out,
		"usage: aquifer sim %s --figure NAME|all [OPTION...]\n%s\n"
		"figures:\n",
		s->name, s->summary);
	for (const struct figure *f = s->figures; f->name; f++)
		fprintf(out, "  %-10s %s\n", f->name, f->title);
	fputs("options:\n", out);
	opt_help(options, out);
	fputs("Exit code 1 when a point could not be run or was wrong; a claim "
	      "that does not\nhold is no failure.\n",
	      out);
}

/* The name is one of the words of the figure's. */
static bool is_named(const struct figure *f, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = f->name; n && (at = strstr(at, name)); at++)
		if ((at == f->name || at[-1] == ' ') &&
		    (!at[n] || at[n] == ' '))
			return true;
	return false;
}

const struct figure *figure_by_name(const struct figure_system *system,
				    const char *name)
{
	for (const struct figure *f = system->figures; f->name; f++)
		if (is_named(f, name))
			return f;
	return NULL;
}

/* What no table can say of a value. */
static int check(const struct figure_system *s, const struct figure_options *o)
{
	if (o->figure && strcmp(o->figure, "all") != 0 &&
	    !figure_by_name(s, o->figure))
		return error_set(-EINVAL, "there is no --figure %s", o->figure);
	if (o->out && access(o->out, W_OK))
		return error_set(-errno, "%s: %s", o->out, strerror(errno));
	return 0;
}

int figure_parse(const struct figure_system *system, struct figure_options *o,
		 int argc, char **argv)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct opt options[OPT_ROWS_MAX];
	char who[32];
	int words;
	enum opt_result rc;

	o->jobs = processors < 1	  ? 1
		  : processors > JOBS_MAX ? JOBS_MAX
					  : (uint32_t)processors;
	opt_join(options, common, system->options);
	snprintf(who, sizeof(who), "sim %s", system->name);
	rc = opt_parse(options, who, argc, argv, OPT_WORDS_NONE, o, &words);
	if (rc == OPT_HELP) {
		usage(system, options, stdout);
		return FIGURE_RAN;
	}
	if (rc == OPT_WRONG || check(system, o)) {
		usage(system, options, stderr);
		fprintf(stderr, "aquifer: %s\n", error_last());
		return FIGURE_USAGE;
	}
	if (!o->print)
		return -1;
	o->print();
	return FIGURE_RAN;
}

int figure_go(const struct figure_system *system,
	      const struct figure_options *o)
{
	bool all = !strcmp(o->figure, "all");
	int bad = 0;

	for (const struct figure *f = system->figures; f->name; f++) {
		int rc = all || is_named(f, o->figure)
				 ? figure_make(system, f, o)
				 : 0;

		/* One of all need not have the points that are asked for. */
		if (!rc || (all && rc == -ENOENT))
			continue;
		fprintf(stderr, "aquifer: sim %s: %s\n", system->name,
			*error_last() ? error_last() : strerror(-rc));
		bad = rc;
	}
	return bad ? FIGURE_BROKEN : FIGURE_RAN;
}

int figure_cmd(const struct figure_system *system, int argc, char **argv)
{
	union {
		struct figure_options common;
		char bytes[FIGURE_OPTIONS_BYTES_MAX];
	} o = {.common = {0}};
	int rc;

	ASSERT(system->options_bytes <= sizeof(o));
	if (system->defaults)
		memcpy(&o, system->defaults, system->options_bytes);
	rc = figure_parse(system, &o.common, argc, argv);
	o.common.figure = o.common.figure ? o.common.figure : "all";
	return rc < 0 ? figure_go(system, &o.common) : rc;
}
