"""Kafka's settings of a broker's security."""

# Derived from Kafka's own tables by tools/generate_settings.py: change it there.

from moldau.metadata.settings.allowed import ANY, at_least, between, items, one_of, one_of_any_case
from moldau.metadata.settings.declare import (
    Boolean,
    ClassName,
    Double,
    Int,
    Long,
    Secret,
    Short,
    Text,
    Texts,
)
from moldau.metadata.settings.setting import HIGH, LOW, MEDIUM, PER_BROKER, Settings


class KafkaSecurity(Settings):
    """TLS, SASL, delegation tokens and principals."""

    connections_max_reauth_ms = Long(0)
    delegation_token_expiry_check_interval_ms = Long(3_600_000, at_least(1), LOW)
    delegation_token_expiry_time_ms = Long(86_400_000, at_least(1))
    delegation_token_max_lifetime_ms = Long(604_800_000, at_least(1))
    delegation_token_secret_key = Secret(None)
    principal_builder_class = ClassName(
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        ANY,
        MEDIUM,
        PER_BROKER,
    )
    sasl_client_callback_handler_class = ClassName(None)
    sasl_enabled_mechanisms = Texts(("GSSAPI",), items(empty=True), MEDIUM, PER_BROKER)
    sasl_jaas_config = Secret(None, ANY, MEDIUM, PER_BROKER)
    sasl_kerberos_kinit_cmd = Text("/usr/bin/kinit", ANY, MEDIUM, PER_BROKER)
    sasl_kerberos_min_time_before_relogin = Long(60_000, ANY, MEDIUM, PER_BROKER)
    sasl_kerberos_principal_to_local_rules = Texts(
        ("DEFAULT",), items(empty=True), MEDIUM, PER_BROKER
    )
    sasl_kerberos_service_name = Text(None, ANY, MEDIUM, PER_BROKER)
    sasl_kerberos_ticket_renew_jitter = Double(0.05, ANY, MEDIUM, PER_BROKER)
    sasl_kerberos_ticket_renew_window_factor = Double(0.8, ANY, MEDIUM, PER_BROKER)
    sasl_login_callback_handler_class = ClassName(None)
    sasl_login_class = ClassName(None)
    sasl_login_connect_timeout_ms = Int(None, ANY, LOW)
    sasl_login_read_timeout_ms = Int(None, ANY, LOW)
    sasl_login_refresh_buffer_seconds = Short(300, ANY, MEDIUM, PER_BROKER)
    sasl_login_refresh_min_period_seconds = Short(60, ANY, MEDIUM, PER_BROKER)
    sasl_login_refresh_window_factor = Double(0.8, ANY, MEDIUM, PER_BROKER)
    sasl_login_refresh_window_jitter = Double(0.05, ANY, MEDIUM, PER_BROKER)
    sasl_login_retry_backoff_max_ms = Long(10_000, ANY, LOW)
    sasl_login_retry_backoff_ms = Long(100, ANY, LOW)
    sasl_mechanism_controller_protocol = Text("GSSAPI", ANY, HIGH)
    sasl_mechanism_inter_broker_protocol = Text("GSSAPI", ANY, MEDIUM, PER_BROKER)
    sasl_oauthbearer_assertion_algorithm = Text("RS256", one_of_any_case("ES256", "RS256"))
    sasl_oauthbearer_assertion_claim_aud = Text(None)
    sasl_oauthbearer_assertion_claim_exp_seconds = Int(300, between(0, 86_400), LOW)
    sasl_oauthbearer_assertion_claim_iss = Text(None)
    sasl_oauthbearer_assertion_claim_jti_include = Boolean(False)
    sasl_oauthbearer_assertion_claim_nbf_seconds = Int(60, between(0, 3600), LOW)
    sasl_oauthbearer_assertion_claim_sub = Text(None)
    sasl_oauthbearer_assertion_file = Text(None)
    sasl_oauthbearer_assertion_private_key_file = Text(None)
    sasl_oauthbearer_assertion_private_key_passphrase = Secret(None)
    sasl_oauthbearer_assertion_template_file = Text(None)
    sasl_oauthbearer_client_credentials_client_id = Text(None)
    sasl_oauthbearer_client_credentials_client_secret = Secret(None)
    sasl_oauthbearer_clock_skew_seconds = Int(30, ANY, LOW)
    sasl_oauthbearer_expected_audience = Texts((), items(empty=True), HIGH)
    sasl_oauthbearer_expected_issuer = Text(None, ANY, HIGH)
    sasl_oauthbearer_jwks_endpoint_refresh_ms = Long(3_600_000, ANY, LOW)
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms = Long(10_000, ANY, LOW)
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms = Long(100, ANY, LOW)
    sasl_oauthbearer_jwks_endpoint_url = Text(None)
    sasl_oauthbearer_jwt_retriever_class = ClassName(
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever"
    )
    sasl_oauthbearer_jwt_validator_class = ClassName(
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator"
    )
    sasl_oauthbearer_scope = Text(None)
    sasl_oauthbearer_scope_claim_name = Text("scope", ANY, LOW)
    sasl_oauthbearer_sub_claim_name = Text("sub", ANY, LOW)
    sasl_oauthbearer_token_endpoint_url = Text(None)
    sasl_server_callback_handler_class = ClassName(None)
    sasl_server_max_receive_size = Int(524_288)
    security_inter_broker_protocol = Text(
        "PLAINTEXT", one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
    )
    security_providers = Text(None, ANY, LOW)
    ssl_allow_dn_changes = Boolean(False, ANY, LOW)
    ssl_allow_san_changes = Boolean(False, ANY, LOW)
    ssl_cipher_suites = Texts((), items(empty=True), MEDIUM, PER_BROKER)
    ssl_client_auth = Text("none", one_of("required", "requested", "none"), MEDIUM, PER_BROKER)
    ssl_enabled_protocols = Texts(("TLSv1.2", "TLSv1.3"), items(empty=True), MEDIUM, PER_BROKER)
    ssl_endpoint_identification_algorithm = Text("https", ANY, LOW, PER_BROKER)
    ssl_engine_factory_class = ClassName(None, ANY, LOW, PER_BROKER)
    ssl_key_password = Secret(None, ANY, MEDIUM, PER_BROKER)
    ssl_keymanager_algorithm = Text("SunX509", ANY, MEDIUM, PER_BROKER)
    ssl_keystore_certificate_chain = Secret(None, ANY, MEDIUM, PER_BROKER)
    ssl_keystore_key = Secret(None, ANY, MEDIUM, PER_BROKER)
    ssl_keystore_location = Text(None, ANY, MEDIUM, PER_BROKER)
    ssl_keystore_password = Secret(None, ANY, MEDIUM, PER_BROKER)
    ssl_keystore_type = Text("JKS", ANY, MEDIUM, PER_BROKER)
    ssl_principal_mapping_rules = Text("DEFAULT", ANY, LOW)
    ssl_protocol = Text("TLSv1.3", ANY, MEDIUM, PER_BROKER)
    ssl_provider = Text(None, ANY, MEDIUM, PER_BROKER)
    ssl_secure_random_implementation = Text(None, ANY, LOW, PER_BROKER)
    ssl_trustmanager_algorithm = Text("PKIX", ANY, MEDIUM, PER_BROKER)
    ssl_truststore_certificates = Secret(None, ANY, MEDIUM, PER_BROKER)
    ssl_truststore_location = Text(None, ANY, MEDIUM, PER_BROKER)
    ssl_truststore_password = Secret(None, ANY, MEDIUM, PER_BROKER)
    ssl_truststore_type = Text("JKS", ANY, MEDIUM, PER_BROKER)
