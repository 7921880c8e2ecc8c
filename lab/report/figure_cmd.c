/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim SYSTEM --figure`: one command line for all figures. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/complaint.h"
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

/* One of the words of a list. */
static bool is_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list; n && (at = strstr(at, word)); at++)
		if ((at == list || at[-1] == ' ') && (!at[n] || at[n] == ' '))
			return true;
	return false;
}

/* The name is one of the words of the figure's. */
static bool is_named(const struct figure *f, const char *name)
{
	return is_word(f->name, name);
}

const struct figure *figure_by_name(const struct figure_system *system,
				    const char *name)
{
	for (const struct figure *f = system->figures; f->name; f++)
		if (is_named(f, name))
			return f;
	return NULL;
}

/* The option that a word of the command line names, which may be cut short;
 * NULL: none, or one that every figure has. */
static const char *option_of(const struct figure_system *s, const char *word)
{
	size_t n = strcspn(word, "=");
	const char *short_for = NULL;

	if (strncmp(word, "--", 2) != 0 || n < 3)
		return NULL;
	if (n == strlen("--quick") && !strncmp(word, "--quick", n))
		return "quick";
	for (const struct opt *o = common; o->name; o++)
		if (!strncmp(o->name, word + 2, n - 2))
			return NULL;
	for (const struct opt *o = s->options; o && o->name; o++) {
		if (strncmp(o->name, word + 2, n - 2) != 0)
			continue;
		if (!o->name[n - 2])
			return o->name;
		short_for = short_for ? short_for : o->name;
	}
	return short_for;
}

static bool is_used(const struct figure_system *s, const char *figure,
		    const char *option)
{
	for (const struct figure_takes *t = s->takes; t->options; t++) {
		bool same =
			figure && t->figure &&
			(!strcmp(figure, "all") || !strcmp(figure, t->figure));

		if ((same || (!figure && !t->figure)) &&
		    is_word(t->options, option))
			return true;
	}
	return false;
}

int figure_check_used(const struct figure_system *s,
		      const struct figure_options *o, int argc, char **argv)
{
	for (int i = 1; s->takes && i < argc; i++) {
		const char *option = option_of(s, argv[i]);

		if (!option || is_used(s, o->figure, option))
			continue;
		if (!o->figure)
			return error_set(-EINVAL,
					 "--%s: only some figures use it; say "
					 "--figure",
					 option);
		return error_set(-EINVAL, "--%s: figure %s does not use it",
				 option, o->figure);
	}
	return 0;
}

/* What no table can say of a value. */
static int check(const struct figure_system *s, const struct figure_options *o)
{
	if (o->figure && strcmp(o->figure, "all") != 0 &&
	    !figure_by_name(s, o->figure))
		return error_set(-EINVAL, "there is no --figure %s", o->figure);
	/* The last folder of the path is made. */
	if (o->out &&
	    ((mkdir(o->out, 0777) && errno != EEXIST) || access(o->out, W_OK)))
		return error_set(-errno, "--out %s: %s", o->out,
				 strerror(errno));
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
	if (rc == OPT_WRONG || check(system, o) ||
	    figure_check_used(system, o, argc, argv)) {
		if (!complaint_is_json())
			usage(system, options, stderr);
		complain(0, "%s", error_last());
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
		complain(rc, "sim %s: %s", system->name,
			 *error_last() ? error_last() : strerror(-rc));
		bad = rc;
	}
	return bad ? FIGURE_BROKEN : FIGURE_RAN;
}

int figure_cmd(const struct figure_system *system,
	       const struct sim_fabric_choice *fabrics, int argc, char **argv)
{
	union {
		struct figure_options common;
		char bytes[FIGURE_OPTIONS_BYTES_MAX];
	} o = {.common = {0}};
	int rc;

	ASSERT(system->options_bytes <= sizeof(o));
	if (system->defaults)
		memcpy(&o, system->defaults, system->options_bytes);
	o.common.fabrics = fabrics;
	rc = figure_parse(system, &o.common, argc, argv);
	o.common.figure = o.common.figure ? o.common.figure : "all";
	return rc < 0 ? figure_go(system, &o.common) : rc;
}
