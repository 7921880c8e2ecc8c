/* SPDX-License-Identifier: Apache-2.0 */
/* Runs and prints the experiments with one link: IP load and bit errors. */
#include "phy_report.h"

enum {
	MESSAGE_BYTES = 64,
	MEMORY_PERMILLE = 50,
	ERROR_FRAME_BYTES = 1518,
};

static const uint32_t frame_sizes[] = {64, 1518, 9018};
static const uint32_t frame_loads[] = {500, 900, 1000};

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

STATIC_ASSERT(ARRAY_LEN(frame_sizes) * ARRAY_LEN(frame_loads) *
			      ARRAY_LEN(ways) ==
		      EDM_LOAD_ROWS,
	      "rows of the table of IP loads");

static const double error_rates[] = {1e-4, 1e-5, 1e-6};

STATIC_ASSERT(4 * ARRAY_LEN(error_rates) == EDM_ERROR_ROWS,
	      "rows of the table of bit errors");

const char *edm_md_name(enum edm_md md)
{
	return md == EDM_MD_DATA ? "whole message" : "per block";
}

int edm_load_rows(uint32_t messages, uint64_t seed,
		  struct edm_load_row rows[EDM_LOAD_ROWS],
		  void (*done)(void *owner, unsigned rows_done), void *owner)
{
	const unsigned per_size = ARRAY_LEN(frame_loads) * ARRAY_LEN(ways);
	int err;

	for (unsigned i = 0; i < EDM_LOAD_ROWS; i++) {
		const struct way *w = &ways[i % ARRAY_LEN(ways)];

		rows[i].config = (struct edm_load_config){
			.md = w->md,
			.policy = w->policy,
			.frame_bytes = frame_sizes[i / per_size],
			.frame_permille =
				frame_loads[i % per_size / ARRAY_LEN(ways)],
			.message_bytes = MESSAGE_BYTES,
			.memory_permille = MEMORY_PERMILLE,
			.messages = messages,
			.seed = seed,
		};
		err = edm_load_run(&rows[i].config, &rows[i].result);
		if (err)
			return err;
		if (done)
			done(owner, i + 1);
	}
	return 0;
}

void edm_load_print(FILE *f, const struct edm_load_row rows[EDM_LOAD_ROWS],
		    uint64_t block_ps)
{
	double ns = (double)block_ps / (double)EDM_NS;

	fprintf(f,
		"Memory messages of %d B (%.1f %% of the link) beside IP "
		"frames "
		"on one link; times in blocks of %.2f ns\n",
		MESSAGE_BYTES, MEMORY_PERMILLE / 10.0, ns);
	fputs("frame   IP  memory data   first         |   rise of message    "
	      "| wait, max   | rise, first  |   IP %       | transit       "
	      "| TX   RX\n"
	      "B        %                              |   mean  max  mean ns "
	      "| block first |  mean     ns | offer  gets  |  plain   EDM  "
	      "| fifo buf\n",
	      f);
	for (unsigned i = 0; i < EDM_LOAD_ROWS; i++) {
		const struct edm_load_config *c = &rows[i].config;
		const struct edm_load_result *r = &rows[i].result;

		fprintf(f,
			"%-5u %4u  %-13s %-13s | %6.2f %4u %8.2f | %5u %5u | "
			"%5.2f %6.2f | %5.1f %5.1f  | %6.0f %5.0f  | %4u %4u\n",
			c->frame_bytes, c->frame_permille / 10,
			edm_md_name(c->md), edm_tx_policy_name(c->policy),
			r->whole_rise_mean, r->whole_rise_max,
			r->whole_rise_mean * ns, r->block_wait_max,
			r->first_wait_max, r->first_rise_mean,
			r->first_rise_mean * ns, 100 * r->offered,
			100 * r->carried, r->transit_plain, r->transit_mean,
			r->fifo_max, r->buffer_max);
	}
	fprintf(f,
		"rise: later than on the same link without frames, each "
		"message beside itself. wait: longest that frames held up\n"
		"one memory block, and the first of a message. transit: of a "
		"frame, from MAC to MAC; EDM's receiver keeps a frame until\n"
		"it is whole.\n");
}

void edm_load_json(struct json_out *j,
		   const struct edm_load_row rows[EDM_LOAD_ROWS],
		   uint64_t block_ps)
{
	json_out_array(j, "ip_load");
	for (unsigned i = 0; i < EDM_LOAD_ROWS; i++) {
		const struct edm_load_config *c = &rows[i].config;
		const struct edm_load_result *r = &rows[i].result;

		json_out_object(j, NULL);
		json_out_u64(j, "frame_bytes", c->frame_bytes);
		json_out_double(j, "ip_load", c->frame_permille / 1000.0);
		json_out_string(j, "memory_data", edm_md_name(c->md));
		json_out_string(j, "policy", edm_tx_policy_name(c->policy));
		json_out_u64(j, "block_ps", block_ps);
		json_out_u64(j, "messages", c->messages);
		json_out_double(j, "alone_blocks", r->alone_mean);
		json_out_double(j, "rise_mean_blocks", r->whole_rise_mean);
		json_out_u64(j, "rise_max_blocks", r->whole_rise_max);
		json_out_double(j, "first_rise_mean_blocks",
				r->first_rise_mean);
		json_out_u64(j, "first_rise_max_blocks", r->first_rise_max);
		json_out_u64(j, "block_wait_max_blocks", r->block_wait_max);
		json_out_u64(j, "first_wait_max_blocks", r->first_wait_max);
		json_out_double(j, "ip_offered", r->offered);
		json_out_double(j, "ip_carried", r->carried);
		json_out_double(j, "transit_plain_blocks", r->transit_plain);
		json_out_double(j, "transit_mean_blocks", r->transit_mean);
		json_out_u64(j, "transit_max_blocks", r->transit_max);
		json_out_u64(j, "tx_fifo_max_blocks", r->fifo_max);
		json_out_u64(j, "rx_buffer_max_blocks", r->buffer_max);
		json_out_double(j, "gaps_reused", r->reused);
		json_out_close(j);
	}
	json_out_close(j);
}

int edm_error_rows(uint32_t messages, uint64_t seed,
		   struct edm_error_row rows[EDM_ERROR_ROWS],
		   void (*done)(void *owner, unsigned rows_done), void *owner)
{
	int err;

	for (unsigned i = 0; i < EDM_ERROR_ROWS; i++) {
		rows[i].config = (struct edm_errors_config){
			.phy = {.md = i / 2 % 2 ? EDM_MD_DATA : EDM_MD_CONTROL,
				.crc = i % 2,
				.start_align = 8},
			.error_rate = error_rates[i / 4],
			.message_bytes = MESSAGE_BYTES,
			.messages = messages,
			.frame_bytes = ERROR_FRAME_BYTES,
			.seed = seed,
		};
		err = edm_errors_run(&rows[i].config, &rows[i].result);
		if (err)
			return err;
		if (done)
			done(owner, i + 1);
	}
	return 0;
}

void edm_error_print(FILE *f, const struct edm_error_row rows[EDM_ERROR_ROWS])
{
	fprintf(f,
		"Bit errors on a link with messages of %d B and frames of %d "
		"B\n"
		"%-8s %-13s %-4s %9s %8s | %8s %8s %8s | %7s %7s %7s %7s %7s "
		"%7s | %8s %7s %7s\n",
		MESSAGE_BYTES, ERROR_FRAME_BYTES, "rate", "memory data", "CRC",
		"bits", "errors", "sent", "lost", "WRONG", "sync", "type",
		"head", "order", "pad", "crc", "frames", "lost", "WRONG");
	for (unsigned i = 0; i < EDM_ERROR_ROWS; i++) {
		const struct edm_errors_config *c = &rows[i].config;
		const struct edm_errors_result *r = &rows[i].result;

		fprintf(f,
			"%-8.0e %-13s %-4s %9.2e %8llu | %8llu %8llu %8llu | "
			"%7llu %7llu %7llu %7llu %7llu %7llu | %8llu %7llu "
			"%7llu\n",
			c->error_rate, edm_md_name(c->phy.md),
			c->phy.crc ? "yes" : "no", (double)r->bits,
			(unsigned long long)r->flips,
			(unsigned long long)r->sent,
			(unsigned long long)r->lost,
			(unsigned long long)(r->wrong + r->phantoms),
			(unsigned long long)r->rx.bad_sync,
			(unsigned long long)r->rx.bad_type,
			(unsigned long long)r->rx.bad_head,
			(unsigned long long)r->rx.bad_order,
			(unsigned long long)r->rx.bad_pad,
			(unsigned long long)r->rx.bad_crc,
			(unsigned long long)r->frames_sent,
			(unsigned long long)(r->frames_sent - r->frames_right -
					     r->frames_wrong),
			(unsigned long long)r->frames_wrong);
	}
	fprintf(f, "WRONG: handed over with other bytes than were sent. sync, "
		   "type: blocks refused; head, order, pad, crc: messages\n"
		   "refused. No FEC: it would correct most of these.\n");
}

void edm_error_json(struct json_out *j,
		    const struct edm_error_row rows[EDM_ERROR_ROWS])
{
	json_out_array(j, "bit_errors");
	for (unsigned i = 0; i < EDM_ERROR_ROWS; i++) {
		const struct edm_errors_config *c = &rows[i].config;
		const struct edm_errors_result *r = &rows[i].result;

		json_out_object(j, NULL);
		json_out_double(j, "error_rate", c->error_rate);
		json_out_string(j, "memory_data", edm_md_name(c->phy.md));
		json_out_bool(j, "crc", c->phy.crc);
		json_out_u64(j, "bits", r->bits);
		json_out_u64(j, "errors", r->flips);
		json_out_u64(j, "sent", r->sent);
		json_out_u64(j, "right", r->right);
		json_out_u64(j, "lost", r->lost);
		json_out_u64(j, "wrong", r->wrong);
		json_out_u64(j, "phantoms", r->phantoms);
		json_out_u64(j, "bad_sync", r->rx.bad_sync);
		json_out_u64(j, "bad_type", r->rx.bad_type);
		json_out_u64(j, "bad_head", r->rx.bad_head);
		json_out_u64(j, "bad_order", r->rx.bad_order);
		json_out_u64(j, "bad_pad", r->rx.bad_pad);
		json_out_u64(j, "bad_crc", r->rx.bad_crc);
		json_out_u64(j, "frames_sent", r->frames_sent);
		json_out_u64(j, "frames_right", r->frames_right);
		json_out_u64(j, "frames_wrong", r->frames_wrong);
		json_out_u64(j, "lock_lost", r->lock_lost);
		json_out_close(j);
	}
	json_out_close(j);
}
