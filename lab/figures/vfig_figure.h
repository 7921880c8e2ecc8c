/* SPDX-License-Identifier: Apache-2.0 */
/* SwordBox's figures as lists of points, with the published numbers beside what
 * came out. */
#ifndef AQ_SCENARIO_VFIG_FIGURE_H
#define AQ_SCENARIO_VFIG_FIGURE_H

#include "vfig.h"

enum {
	VFIG_POINTS_MAX = 48,
	VFIG_CLAIMS_MAX = 8,
	VFIG_TEXT_MAX = 112,
};

struct vfig_claim {
	char what[VFIG_TEXT_MAX];
	double published; /* NAN: only words are */
	double ours;
	const char *unit;
	bool at_most; /* ours is to be at most so much, else at least half */
	const char *note;
};

struct vfig_figure;

/* One way of all its points. */
struct vfig_grid {
	const struct vfig_figure *figure;
	unsigned count;
	struct vfig_config config[VFIG_POINTS_MAX];
	struct vfig_result point[VFIG_POINTS_MAX];
	unsigned claim_count;
	struct vfig_claim claim[VFIG_CLAIMS_MAX];
};

/* Which of a figure's points are wanted; VFIG_SYSTEMS and 0: all. */
struct vfig_choice {
	enum vfig_system system;
	uint32_t threads;
	uint32_t write_percent_1; /* + 1 */
};

struct vfig_figure {
	const char *name;
	const char *what;
	void (*points)(struct vfig_grid *g);
	void (*claims)(struct vfig_grid *g);
};

extern const struct vfig_figure vfig_figures[]; /* ends with name NULL */
const struct vfig_figure *vfig_figure_find(const char *name);
/* All its points, in `jobs` processes. quick: shorter spans. */
int vfig_figure_run(const struct vfig_figure *f,
		    const struct vfig_choice *choice, unsigned jobs, bool quick,
		    struct vfig_grid *out) MUST_CHECK;
bool vfig_claim_holds(const struct vfig_claim *c);

/* `aquifer sim switch --figure ...`; argv[0] is its name. */
int vfig_cmd(int argc, char **argv);

#endif
