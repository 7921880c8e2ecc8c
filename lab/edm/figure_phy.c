/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of the PHY: Table 1, figure 5, memory beside IP frames, captured
 * frames, bit errors. They need no simulation of a cluster. */
#include <errno.h>

#include "base/error.h"
#include "edm_figure.h"

enum {
	PHY_MESSAGES = 2000, /* about a second for all rows */
	PHY_MESSAGES_FULL = 20000,
	MESSAGE_BYTES = 64,
	MEMORY_PERMILLE = 50,
	ERROR_FRAME_BYTES = 1518,
};

static double ns(uint64_t ps)
{
	return (double)ps / (double)EDM_NS;
}

static const char *const op_name[EDM_LAT_OPS] = {
	[EDM_LAT_READ] = "read", [EDM_LAT_WRITE] = "write"};

static const char *md_name(enum edm_md md)
{
	return md == EDM_MD_DATA ? "whole message" : "per block";
}

static uint32_t phy_messages(const struct figure_run *r)
{
	const struct edm_figure_options *o = edm_options_of(r);

	if (o->messages)
		return (uint32_t)u64_min(o->messages, UINT32_MAX);
	return o->full ? PHY_MESSAGES_FULL : PHY_MESSAGES;
}

/* ---- Table 1 ------------------------------------------------------------- */

enum {
	N_NETWORK,
	N_TOTAL,
	N_TIMES_EDM,
};

const struct figure_column edm_columns_table1[] = {
	EDM_COLUMN(p.x_name, "stack", 0),
	EDM_COLUMN(p.series, "op", 0),
	EDM_COLUMN(number[N_NETWORK], "network_ns", 2),
	EDM_COLUMN(number[N_TOTAL], "total_ns", 2),
	EDM_COLUMN(text[0], "paper", 0),
	EDM_COLUMN(p.published, "paper_ns", FIGURE_JSON_ONLY),
	/* Whether the paper's sum follows from its own lines. */
	EDM_COLUMN(agrees, "agrees", 0),
	EDM_COLUMN(number[N_TIMES_EDM], "times_edm", 2),
	{.name = NULL},
};

int edm_plan_table1(struct figure_run *r)
{
	struct edm_table1 t;

	edm_table1(&t);
	for (int s = 0; s < EDM_LAT_STACKS; s++)
		for (int op = 0; op < EDM_LAT_OPS; op++) {
			struct edm_row *row =
				figure_add(r, NULL, op_name[op], s);

			row->p.x_name = edm_lat_stack_name(s);
			row->p.published = ns(edm_table1_paper(s, op)->ps);
			row->text[0] = edm_table1_paper(s, op)->text;
			row->number[N_NETWORK] = ns(t.network_ps[s][op]);
			row->number[N_TOTAL] = ns(t.total_ps[s][op]);
			row->agrees = edm_table1_agrees(&t, s, op);
			row->number[N_TIMES_EDM] =
				(double)t.total_ps[s][op] /
				(double)t.total_ps[EDM_LAT_EDM][op];
		}
	return 0;
}

static void cell_print(FILE *f, const struct edm_table1_cell *c)
{
	char text[32];
	int n;

	if (!c->count && !c->extra_ps) {
		fprintf(f, " %14s", "0");
		return;
	}
	n = snprintf(text, sizeof(text), "%ux%.2f", c->count, ns(c->each_ps));
	if (c->extra_ps && n > 0 && (size_t)n < sizeof(text))
		(void)snprintf(text + n, sizeof(text) - (size_t)n, "+%.2f",
			       ns(c->extra_ps));
	fprintf(f, " %14s", text);
}

void edm_table1_print(const struct figure_run *r, FILE *f)
{
	struct edm_table1 t;

	if (r->figure->plan != edm_plan_table1)
		return;
	edm_table1(&t);
	fprintf(f, "\n%-8s %-22s", "", "");
	for (int i = 0; i < EDM_LAT_STACKS * EDM_LAT_OPS; i++)
		fprintf(f, " %8s %5s", edm_lat_stack_name(i / EDM_LAT_OPS),
			op_name[i % EDM_LAT_OPS]);
	fputc('\n', f);
	for (int k = 0; k < EDM_LAT_TABLE_LINES; k++) {
		fprintf(f, "%-8s %-22s", edm_lat_place_name(t.line[k].place),
			t.line[k].what);
		for (int i = 0; i < EDM_LAT_STACKS * EDM_LAT_OPS; i++)
			cell_print(f, &t.line[k].cell[i / EDM_LAT_OPS]
						     [i % EDM_LAT_OPS]);
		fputc('\n', f);
	}
	fprintf(f,
		"Host and memory node on one cable, no switch: %.2f ns "
		"(measured by the authors: 153.6 to 158.7 ns).\n",
		ns(edm_lat_loopback_ps()));
}

/* ---- figure 5 ------------------------------------------------------------ */

const struct figure_column edm_columns_5[] = {
	EDM_COLUMN(text[0], "op", 0),
	EDM_COLUMN(text[1], "place", 0),
	EDM_COLUMN(p.series, "part", 0),
	EDM_COLUMN(stage.what, "step", 0),
	EDM_COLUMN(stage.cycles, "cycles", 0),
	EDM_COLUMN(number[0], "ns", 2),
	{.name = NULL},
};

int edm_plan_5(struct figure_run *r)
{
	static const char *const place[EDM_LAT_OPS][EDM_LAT_PLACES] = {
		{"r compute", "r switch", "r memory", "r link"},
		{"w compute", "w switch", "w memory", "w link"}};
	const struct edm_lat_config c = {
		.gbps = edm_options_of(r)->base.gbps,
		.data_bytes = MESSAGE_BYTES,
		.asic = edm_options_of(r)->base.asic,
	};
	struct edm_lat_path p;

	for (int op = 0; op < EDM_LAT_OPS; op++) {
		int err = edm_lat_path(op, &c, &p);

		if (err)
			return err;
		for (uint32_t i = 0; i < p.stages; i++) {
			const struct edm_lat_stage *s = &p.stage[i];
			struct edm_row *row =
				figure_add(r, NULL, edm_lat_part_name(s->part),
					   op * EDM_LAT_PLACES + s->place);

			row->p.x_name = place[op][s->place];
			row->text[0] = op_name[op];
			row->text[1] = edm_lat_place_name(s->place);
			row->stage = *s;
			row->number[0] = ns(s->ps);
		}
	}
	return 0;
}

/* ---- memory beside IP frames --------------------------------------------- */

enum {
	N_IP_LOAD,
	N_RISE_NS,
	N_FIRST_RISE_NS,
	N_BLOCK_PS,
};

const struct figure_column edm_columns_ip[] = {
	EDM_COLUMN(load.config.frame_bytes, "frame_bytes", 0),
	EDM_COLUMN(number[N_IP_LOAD], "ip_load", 1),
	EDM_COLUMN(text[0], "memory_data", 0),
	EDM_COLUMN(text[1], "policy", 0),
	EDM_COLUMN(number[N_BLOCK_PS], "block_ps", FIGURE_JSON_ONLY),
	EDM_COLUMN(load.config.messages, "messages", FIGURE_JSON_ONLY),
	EDM_COLUMN(load.result.alone_mean, "alone_blocks", FIGURE_JSON_ONLY),
	/* Later than on the same link without frames, each message beside
	 * itself. */
	EDM_COLUMN(load.result.whole_rise_mean, "rise_mean_blocks", 2),
	EDM_COLUMN(load.result.whole_rise_max, "rise_max_blocks", 0),
	EDM_COLUMN(number[N_RISE_NS], "rise_mean_ns", 2),
	EDM_COLUMN(load.result.first_rise_mean, "first_rise_mean_blocks", 2),
	EDM_COLUMN(number[N_FIRST_RISE_NS], "first_rise_mean_ns", 2),
	EDM_COLUMN(load.result.first_rise_max, "first_rise_max_blocks",
		   FIGURE_JSON_ONLY),
	/* The longest that frames held up a memory block. */
	EDM_COLUMN(load.result.block_wait_max, "block_wait_max_blocks", 0),
	EDM_COLUMN(load.result.first_wait_max, "first_wait_max_blocks", 0),
	EDM_COLUMN(load.result.offered, "ip_offered", 3),
	EDM_COLUMN(load.result.carried, "ip_carried", 3),
	/* Of a frame, from MAC to MAC; EDM's receiver keeps it until it is
	 * whole. */
	EDM_COLUMN(load.result.transit_plain, "transit_plain_blocks", 0),
	EDM_COLUMN(load.result.transit_mean, "transit_mean_blocks", 0),
	EDM_COLUMN(load.result.transit_max, "transit_max_blocks",
		   FIGURE_JSON_ONLY),
	EDM_COLUMN(load.result.fifo_max, "tx_fifo_max_blocks", 0),
	EDM_COLUMN(load.result.buffer_max, "rx_buffer_max_blocks", 0),
	EDM_COLUMN(load.result.reused, "gaps_reused", FIGURE_JSON_ONLY),
	{.name = NULL},
};

/* How memory is sent: the per-block mode, the other one, and an Ethernet MAC
 * that cannot interrupt a frame. */
static const struct way {
	enum edm_md md;
	enum edm_tx_policy policy;
} ways[] = {
	{EDM_MD_CONTROL, EDM_TX_MEMORY}, {EDM_MD_CONTROL, EDM_TX_FAIR},
	{EDM_MD_DATA, EDM_TX_MEMORY},	 {EDM_MD_DATA, EDM_TX_FAIR},
	{EDM_MD_DATA, EDM_TX_NO_SPLIT},
};

static int ip_add(struct figure_run *r, const char *panel, uint32_t frame_bytes,
		  uint32_t permille, const struct way *w)
{
	const struct edm_figure_options *o = edm_options_of(r);
	double block_ps = (double)edm_block_ps(o->base.gbps);
	struct edm_row *row = figure_add(r, panel, "", permille / 1000.0);
	int rc;

	row->load.config = (struct edm_load_config){
		.md = w->md,
		.policy = w->policy,
		.frame_bytes = frame_bytes,
		.frame_permille = permille,
		.message_bytes = MESSAGE_BYTES,
		.memory_permille = MEMORY_PERMILLE,
		.messages = phy_messages(r),
		.seed = o->base.seed,
	};
	row->text[0] = md_name(w->md);
	row->text[1] = edm_tx_policy_name(w->policy);
	snprintf(row->p.series, sizeof(row->p.series), "%s, %s", row->text[0],
		 row->text[1]);
	rc = edm_load_run(&row->load.config, &row->load.result);
	row->number[N_IP_LOAD] = row->p.x;
	row->number[N_BLOCK_PS] = block_ps;
	row->number[N_RISE_NS] =
		row->load.result.whole_rise_mean * block_ps / 1000;
	row->number[N_FIRST_RISE_NS] =
		row->load.result.first_rise_mean * block_ps / 1000;
	return rc;
}

int edm_plan_ip(struct figure_run *r)
{
	static const uint32_t bytes[] = {64, 1518, 9018};
	static const char *const panel[] = {
		"frames of 64 B", "frames of 1518 B", "frames of 9018 B"};
	static const uint32_t permille[] = {500, 900, 1000};
	int rc = 0;

	for (unsigned b = 0; b < ARRAY_LEN(bytes); b++)
		for (unsigned p = 0; p < ARRAY_LEN(permille); p++)
			for (unsigned w = 0; w < ARRAY_LEN(ways) && !rc; w++)
				rc = ip_add(r, panel[b], bytes[b], permille[p],
					    &ways[w]);
	return rc;
}

/* The authors report no numbers: near-constant is a tenth of 300 ns here. */
void edm_judge_ip(struct figure_run *r)
{
	static const enum edm_tx_policy policy[] = {EDM_TX_FAIR, EDM_TX_MEMORY};

	for (unsigned k = 0; k < ARRAY_LEN(policy); k++) {
		double later_ns = 0;

		for (size_t i = 0; i < r->count; i++) {
			const struct edm_row *x = figure_row(r, i);

			if (x->load.config.policy == policy[k] &&
			    x->number[N_RISE_NS] > later_ns)
				later_ns = x->number[N_RISE_NS];
		}
		figure_claim_add(r,
				 &(struct figure_claim){
					 .what = "later beside frames, mean of "
						 "the worst load",
					 .most = 30,
					 .unit = "ns",
					 .note = edm_tx_policy_name(policy[k])},
				 later_ns);
	}
}

/* ---- captured frames ----------------------------------------------------- */

const struct figure_column edm_columns_frames[] = {
	EDM_COLUMN(p.series, "memory data", 0),
	EDM_COLUMN(p.x_name, "policy", 0),
	EDM_COLUMN(frames.frames, "frames", 0),
	EDM_COLUMN(frames.messages, "messages", 0),
	EDM_COLUMN(frames.wrong, "wrong", 0),
	EDM_COLUMN(frames.blocks, "blocks", 0),
	/* Blocks of frames that memory held up, idle blocks that it took. */
	EDM_COLUMN(frames.preemptions, "waited", 0),
	EDM_COLUMN(frames.gaps_reused, "reused", 0),
	/* Most blocks that waited at its two ends. */
	EDM_COLUMN(frames.fifo_max, "fifo", 0),
	EDM_COLUMN(frames.buffer_max, "buffer", 0),
	{.name = NULL},
};

int edm_plan_frames(struct figure_run *r)
{
	const struct edm_figure_options *o = edm_options_of(r);
	struct edm_pcap pcap;
	int rc;

	if (!o->pcap)
		return error_set(-EINVAL, "--figure frames: needs --pcap FILE");
	rc = edm_pcap_read(o->pcap, &pcap);
	if (rc)
		return rc;
	for (int k = 0; k < 2 * EDM_TX_POLICIES && !rc; k++) {
		struct edm_frames_config c = {
			.phy = {.md = k & 1 ? EDM_MD_CONTROL : EDM_MD_DATA,
				.start_align = o->base.gbps < 40 ? 4 : 8},
			.policy = (enum edm_tx_policy)(k / 2),
			.seed = o->base.seed,
		};
		struct edm_row *row = figure_add(
			r, NULL, k & 1 ? "control blocks" : "data blocks",
			k / 2);

		row->p.x_name = edm_tx_policy_name(c.policy);
		rc = edm_frames_run(&pcap, &c, &row->frames);
		if (!rc && row->frames.wrong)
			row->p.err = -EILSEQ;
	}
	edm_pcap_release(&pcap);
	return rc;
}

/* ---- bit errors ---------------------------------------------------------- */

const struct figure_column edm_columns_errors[] = {
	EDM_COLUMN(error.config.error_rate, "error_rate", 6),
	EDM_COLUMN(text[0], "memory_data", 0),
	EDM_COLUMN(error.config.phy.crc, "crc", 0),
	EDM_COLUMN(error.result.bits, "bits", 0),
	EDM_COLUMN(error.result.flips, "errors", 0),
	EDM_COLUMN(error.result.sent, "sent", 0),
	EDM_COLUMN(error.result.right, "right", FIGURE_JSON_ONLY),
	EDM_COLUMN(error.result.lost, "lost", 0),
	EDM_COLUMN(error.result.wrong, "wrong", 0),
	EDM_COLUMN(error.result.phantoms, "phantoms", 0),
	/* Blocks that were refused, then messages. */
	EDM_COLUMN(error.result.rx.bad_sync, "bad_sync", 0),
	EDM_COLUMN(error.result.rx.bad_type, "bad_type", 0),
	EDM_COLUMN(error.result.rx.bad_head, "bad_head", 0),
	EDM_COLUMN(error.result.rx.bad_order, "bad_order", 0),
	EDM_COLUMN(error.result.rx.bad_pad, "bad_pad", 0),
	EDM_COLUMN(error.result.rx.bad_crc, "bad_crc", 0),
	EDM_COLUMN(error.result.frames_sent, "frames_sent", 0),
	EDM_COLUMN(error.result.frames_right, "frames_right", 0),
	EDM_COLUMN(error.result.frames_wrong, "frames_wrong", 0),
	EDM_COLUMN(error.result.lock_lost, "lock_lost", FIGURE_JSON_ONLY),
	{.name = NULL},
};

/* No FEC: it would correct most of these. */
int edm_plan_errors(struct figure_run *r)
{
	static const double rates[] = {1e-4, 1e-5, 1e-6};
	int rc = 0;

	for (unsigned i = 0; i < 4 * ARRAY_LEN(rates) && !rc; i++) {
		struct edm_errors_config c = {
			.phy = {.md = i / 2 % 2 ? EDM_MD_DATA : EDM_MD_CONTROL,
				.crc = i % 2,
				.start_align = 8},
			.error_rate = rates[i / 4],
			.message_bytes = MESSAGE_BYTES,
			.messages = phy_messages(r),
			.frame_bytes = ERROR_FRAME_BYTES,
			.seed = edm_options_of(r)->base.seed,
		};
		struct edm_row *row = figure_add(r, NULL, "", rates[i / 4]);

		row->text[0] = md_name(c.phy.md);
		snprintf(row->p.series, sizeof(row->p.series), "%s%s",
			 row->text[0], c.phy.crc ? ", CRC" : "");
		row->error.config = c;
		rc = edm_errors_run(&c, &row->error.result);
	}
	return rc;
}
