/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of publications, made again: points by this tree's code, the
 * published numbers beside them, claims about both; as a table, as JSON and as
 * a picture.
 *
 * How to add a figure to a system: write a function that adds its points
 * (figure_add) and a row of the system's table of figures that names it, the
 * axes, and the columns that the picture shows. Published values stand in the
 * system's table of claims: each is a column's value at one point, or its ratio
 * to another point. Only a claim that no such row can express needs a judge
 * function (figure_claim_add). Table, JSON, picture, command line and exit code
 * follow.
 *
 * How to add a system: a row is a struct that begins with a struct
 * figure_point; columns name its members (FIGURE_COLUMN); `run` fills in what
 * was measured. figure_cmd() is then its command.
 */
#ifndef AQ_REPORT_FIGURE_H
#define AQ_REPORT_FIGURE_H

#include <stddef.h>
#include <stdio.h>

#include "base/base.h"

enum {
	FIGURE_SERIES_MAX = 48, /* bytes of its name */
	FIGURE_CLAIMS_MAX = 48,
	FIGURE_OPTIONS_BYTES_MAX = 256, /* of a system's struct of them */
	FIGURE_JSON_ONLY = -1,		/* instead of decimals */
};

/* One rule for all: a claim that does not hold is no failure. */
enum figure_exit {
	FIGURE_RAN = 0,
	FIGURE_BROKEN = 1, /* a point could not be run, or was wrong */
	FIGURE_USAGE = 2,
};

/* How a picture looks; the default is lines over linear axes. */
enum figure_look {
	FIGURE_LOG_X = 1,
	FIGURE_LOG_Y = 2,
	FIGURE_BARS = 4, /* over the names or numbers of x, side by side */
	/* The columns are the series of one chart, instead of a panel each. */
	FIGURE_TOGETHER = 8,
};

struct sim_fabric_choice; /* sim/net_fabric.h; this room only keeps it */

/* The first member of every system's rows. */
struct figure_point {
	const char *panel; /* each has a part of the picture; NULL is one, too
			    */
	/* A line, or a colour of bars. Points with the same series and x add
	 * up in the picture; those without a series are not in it. */
	char series[FIGURE_SERIES_MAX];
	double x;
	const char *x_name; /* stands at the axis instead of the number */
	double published;   /* of the picture's first column; 0: nothing */
	int err;	    /* it could not be run */
	const struct sim_fabric_choice *fabric; /* NULL: Ethernet */
};

/* ---- columns ------------------------------------------------------------- */

enum figure_type {
	FIGURE_REAL, /* NaN: no value */
	FIGURE_INT,
	FIGURE_U32,
	FIGURE_U64,
	FIGURE_BOOL,
	FIGURE_TEXT,   /* const char *; NULL: no value */
	FIGURE_CHARS,  /* an array of char */
	FIGURE_ANSWER, /* int: 1 yes, 0 no, -1 no value */
};

#define FIGURE_TYPE(v) \
	_Generic((v),           \
		double: FIGURE_REAL,  \
		int: FIGURE_INT,      \
		uint32_t: FIGURE_U32, \
		uint64_t: FIGURE_U64, \
		bool: FIGURE_BOOL,    \
		const char *: FIGURE_TEXT, \
		char *: FIGURE_CHARS)

/* A member of a row: its name in JSON and above its column, and the decimals
 * that are printed there, or FIGURE_JSON_ONLY. */
struct figure_column {
	const char *name;
	size_t at;
	enum figure_type type;
	int decimals;
};

#define FIGURE_COLUMN(row, member, name, decimals)                   \
	{                                                            \
		name, offsetof(row, member),                         \
			FIGURE_TYPE(((row *)NULL)->member), decimals \
	}

/* ---- claims -------------------------------------------------------------- */

/* A published value, compared with ours. Unit "%": the column is a share. */
struct figure_claim {
	const char *figure; /* its name */
	const char *what;
	const char *column;
	const char *series;
	double x;
	const char *under; /* ours is a ratio to this series; NULL: a value */
	double under_x;
	double published;   /* 0: only words are */
	double least, most; /* bounds in which it holds; 0: none */
	const char *unit;
	const char *note;
};

/* A claim after the run. */
struct figure_verdict {
	char what[128];
	double published, least, most, ours; /* NaN: none */
	const char *unit, *note;
	int holds; /* 1, 0; -1: nothing is asked of it */
	/* Where it stands in the picture; NULL: only among the claims. */
	const struct figure_point *at;
	const char *column;
	double mark;
};

/* ---- figures ------------------------------------------------------------- */

struct figure_run;
struct opt;

/* The system's options, and `quick`, that a figure uses, in words. The name
 * NULL: of a command line without --figure. */
struct figure_takes {
	const char *figure, *options;
};

struct figure {
	const char *name; /* or several: "8 9" */
	const char *title;
	const char *x_label;
	unsigned look; /* enum figure_look */
	const char *y; /* the columns that are shown: "mops", "p50_us p99_us" */
	/* Adds the points. 0 or -errno with words. */
	int (*plan)(struct figure_run *r);
	/* Called after the run: adds what follows from several points, and
	 * claims that are no table's row. May be NULL. */
	void (*judge)(struct figure_run *r);
	const struct figure_column *columns; /* NULL: the system's */
};

/* What all systems take; the head of a system's own. */
struct figure_options {
	const char *figure; /* as it was asked for; NULL: it was not */
	bool quick;	    /* few and small points, which prove nothing */
	bool json;
	bool detail; /* text has all that JSON has */
	uint32_t jobs;
	const char *out;     /* directory for pictures; NULL: none */
	void (*print)(void); /* what an option prints instead; NULL: nothing */
	const char *fabric;  /* of FIGURE_OPTION_FABRIC; NULL: Ethernet */
	const struct sim_fabric_choice *fabrics; /* where it is looked up */
};

/* For the options of systems whose points run over the simulated network. */
#define FIGURE_OPTION_FABRIC                                            \
	OPT_WORD(struct figure_options, fabric, "fabric",               \
		 "ethernet|edm|edm64|cxl",                              \
		 "what carries the frames; points that need a program " \
		 "in the switch run over ethernet only (ethernet)")

struct figure_system {
	const char *name;		     /* as in `aquifer sim NAME` */
	const char *source;		     /* what was published where */
	const char *summary;		     /* of the usage */
	const struct figure *figures;	     /* ends with name NULL */
	const struct figure_column *columns; /* ends with name NULL */
	const struct figure_claim *claims;   /* of all figures */
	size_t claim_count;
	/* Its own, or NULL, and what they are before any is given: a struct
	 * that begins with a struct figure_options. */
	const struct opt *options;
	const struct figure_options *defaults;
	/* An option that a figure does not use is refused; NULL: all are used
	 * by all. Ends with options NULL. */
	const struct figure_takes *takes;
	size_t options_bytes;
	size_t row_bytes;
	/* Runs all points and sets their err. -errno with words: none ran. */
	int (*run)(struct figure_run *r);
	/* For `run`: one point of its own, in any process, whose result is
	 * these bytes of its row; words when the result is wrong. */
	int (*point)(void *row);
	size_t result_at, result_bytes;
	const char *(*wrong)(const void *row);
	/* More text behind the table; may be NULL. */
	void (*more)(const struct figure_run *r, FILE *out);
};

/* A figure that is being made. */
struct figure_run {
	const struct figure_system *system;
	const struct figure *figure;
	const struct figure_options *options;
	char *rows;
	size_t count, size;
	unsigned verdicts;
	struct figure_verdict verdict[FIGURE_CLAIMS_MAX];
};

/* The row at `index`; begins with a struct figure_point. */
static inline void *figure_row(const struct figure_run *r, size_t index)
{
	return r->rows + index * r->system->row_bytes;
}

/* Adds a row of zeros with these members; valid until the next call. */
void *figure_add(struct figure_run *r, const char *panel, const char *series,
		 double x);
/* The point that was run, or NULL. panel NULL: any. */
const void *figure_find(const struct figure_run *r, const char *panel,
			const char *series, double x);
/* A number of a row, by its column; NaN: none. */
double figure_value(const struct figure_run *r, const void *row,
		    const char *column);
/* A claim as in a table's row; it says nothing unless its points were run. */
void figure_claim_at(struct figure_run *r, const struct figure_claim *c);
/* Adds a claim together with our value; its column and points are ignored. */
void figure_claim_add(struct figure_run *r, const struct figure_claim *c,
		      double ours);

/* The steps, for tests; figure_make does them all. */
void figure_init(struct figure_run *r, const struct figure_system *system,
		 const struct figure *figure, const struct figure_options *o);
void figure_judge(struct figure_run *r);
int figure_print(const struct figure_run *r, FILE *out) MUST_CHECK;
/* Writes dir/SYSTEM-FIGURE.svg. */
int figure_picture(const struct figure_run *r, const char *dir) MUST_CHECK;
void figure_release(struct figure_run *r);

/* -ENOENT: it has none of the points that were asked for. -EIO: some could
 * not be run or were wrong; the rest was printed. */
int figure_make(const struct figure_system *system, const struct figure *figure,
		const struct figure_options *o) MUST_CHECK;
/* NULL: there is none of that name. */
const struct figure *figure_by_name(const struct figure_system *system,
				    const char *name);
/* Reads a command line; argv[0] is the system's name. -1: go on; else the exit
 * code. */
int figure_parse(const struct figure_system *system, struct figure_options *o,
		 int argc, char **argv) MUST_CHECK;
/* Refuses an option that none of the figures asked for uses: -EINVAL. */
int figure_check_used(const struct figure_system *system,
		      const struct figure_options *o, int argc,
		      char **argv) MUST_CHECK;
/* Makes o->figure, or "all". Returns an exit code. */
int figure_go(const struct figure_system *system,
	      const struct figure_options *o);
/* Both: `aquifer sim SYSTEM --figure NAME|all ...`. */
int figure_cmd(const struct figure_system *system,
	       const struct sim_fabric_choice *fabrics, int argc, char **argv);

/* ---- commit.c ------------------------------------------------------------ */

/* That this program was built from, with "-dirty" if files were changed. */
const char *report_commit(void);

/* ---- table.c ------------------------------------------------------------- */

struct json_out;

/* The text of one cell; "": no value. */
const char *figure_cell(const struct figure_column *c, const void *row,
			char *text, size_t size);
void figure_cell_json(struct json_out *j, const char *key,
		      const struct figure_column *c, const void *row);
void figure_table(FILE *out, const struct figure_column *columns,
		  const void *rows, size_t row_bytes, size_t count);
void figure_table_json(struct json_out *j, const char *key,
		       const struct figure_column *columns, const void *rows,
		       size_t row_bytes, size_t count);

#endif
