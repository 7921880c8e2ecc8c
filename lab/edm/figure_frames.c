/* SPDX-License-Identifier: Apache-2.0 */
/* Captured Ethernet frames through an EDM link, in both ways of sending memory
 * data and under every policy. */
#include <errno.h>

#include "base/error.h"
#include "edm_figure.h"
#include "phy_frames.h"

static const char *const head[] = {
	"memory data", "policy", "frames", "messages", "wrong", "blocks",
	"waited",      "reused", "fifo",   "buffer",   NULL};

static void row_add(struct edm_table *t, const struct edm_frames_config *c,
		    const struct edm_frames_result *r)
{
	edm_table_text(t, c->phy.md == EDM_MD_DATA ? "data blocks"
						   : "control blocks");
	edm_table_text(t, "%s", edm_tx_policy_name(c->policy));
	edm_table_number(t, (double)r->frames, 0);
	edm_table_number(t, (double)r->messages, 0);
	edm_table_number(t, (double)r->wrong, 0);
	edm_table_number(t, (double)r->blocks, 0);
	edm_table_number(t, (double)r->preemptions, 0);
	edm_table_number(t, (double)r->gaps_reused, 0);
	edm_table_number(t, r->fifo_max, 0);
	edm_table_number(t, r->buffer_max, 0);
}

int edm_figure_frames(const struct edm_figure_options *o)
{
	struct edm_frames_result r;
	struct edm_table t;
	struct edm_pcap pcap;
	uint64_t wrong = 0;
	int rc;

	if (!o->pcap)
		return error_set(-EINVAL, "--figure frames: needs --pcap FILE");
	rc = edm_pcap_read(o->pcap, &pcap);
	if (rc)
		return rc;
	edm_table_init(&t, "frames",
		       "Captured frames as fast as the link takes them, memory "
		       "messages between; waited, reused: blocks of frames "
		       "that memory held up, idle blocks that it took; fifo, "
		       "buffer: most blocks that waited at its two ends",
		       head);
	for (int k = 0; k < 2 * EDM_TX_POLICIES && !rc; k++) {
		struct edm_frames_config c = {
			.phy = {.md = k & 1 ? EDM_MD_CONTROL : EDM_MD_DATA,
				.start_align = o->base.gbps < 40 ? 4 : 8},
			.policy = (enum edm_tx_policy)(k / 2),
			.seed = o->base.seed,
		};

		rc = edm_frames_run(&pcap, &c, &r);
		if (rc)
			break;
		wrong += r.wrong;
		row_add(&t, &c, &r);
	}
	edm_pcap_release(&pcap);
	if (rc) {
		edm_table_release(&t);
		return rc;
	}
	edm_figure_emit(o, &t);
	return wrong ? error_set(-EILSEQ, "frames or messages came out wrong")
		     : 0;
}
