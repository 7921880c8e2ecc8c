/* SPDX-License-Identifier: Apache-2.0 */
/* The shipped switch between all machines of a figure, with the program that
 * serves rings. */
#include <stdio.h>

#include "fig_priv.h"
#include "rig/tor_net.h"

int fig_switch_open(struct fig *fig)
{
	const struct fig_program *p = &fig->cfg.program;
	struct rig_tor_config cfg = {.programs = {fig->program},
				     .program_count = 1};
	struct rig_engine *e;
	int err;

	if (fig->cfg.fabric && fig->cfg.fabric->plug)
		return -EOPNOTSUPP;
	snprintf(fig->program, sizeof(fig->program),
		 "cowbird:sessions=%u,tell=%u,fetch=%u,probe_us=%u,flush_us=%u,"
		 "filter=%s",
		 FIG_THREADS_MAX, p->tell, p->fetch, p->probe_us, p->flush_us,
		 p->no_filter ? "off" : "on");
	err = rig_tor_create(rig_stage_net(fig->stage), &cfg, &fig->rig.tor);
	return err ? err : rig_engine_open_switch(&fig->rig, &e);
}

struct fig_switch_counts fig_switch_counts(const struct fig *fig)
{
	struct rig_tor *t = fig->rig.tor;

	return (struct fig_switch_counts){
		.packets = rig_tor_count(t, "program_frames"),
		.probes = rig_tor_count(t, "probes"),
		.told = rig_tor_count(t, "publications"),
		.recirculated = rig_tor_count(t, "recirculated"),
		.held = rig_tor_count(t, "held"),
		.lost = rig_tor_count(t, "end_timeouts") +
			rig_tor_count(t, "end_naks"),
	};
}

void fig_switch_close(struct fig *fig)
{
	rig_tor_destroy(fig->rig.tor);
	fig->rig.tor = NULL;
}
