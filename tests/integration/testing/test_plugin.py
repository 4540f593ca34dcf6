"""The pytest plugin, in runs of pytest inside the test."""

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

SCOPES = """
    seen = []

    def test_one(moldau, moldau_session):
        moldau.create_topic("t")
        moldau_session.create_topic("t")
        seen.append(moldau_session)
        assert moldau.port != moldau_session.port

    def test_other(moldau, moldau_session):
        assert moldau.topics() == {}
        assert moldau_session.topics() == {"t": 1}
        assert [moldau_session] == seen
"""


ARGUMENTS = ("-W", "error", "--strict-markers")


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(*ARGUMENTS, *arguments)


def test_a_broker_for_each_test_and_one_for_the_session(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SCOPES)
    pytester.runpytest_subprocess(*ARGUMENTS).assert_outcomes(passed=2)


def test_settings_by_fixture_and_by_marker(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def moldau_settings():
            return {"num.partitions": 2, "log.retention.hours": 1}
        """
    )
    pytester.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.moldau(settings={"log.retention.hours": 2})

        def settings_of(broker):
            settings = broker._running.hosted.node.settings
            return settings.num_partitions, settings.log_retention_hours

        def test_all(moldau, moldau_session):
            assert settings_of(moldau_session) == (2, 1)
            assert settings_of(moldau) == (2, 2)

        @pytest.mark.moldau(settings={"num.partitions": 3})
        def test_one(moldau):
            assert settings_of(moldau) == (3, 2)
        """
    )
    run(pytester).assert_outcomes(passed=2)


def test_mistakes_are_told(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.moldau(setings={})
        def test_marker(moldau):
            pass

        @pytest.mark.moldau(settings={"num.partition": 3})
        def test_setting(moldau):
            pass
        """
    )
    result = run(pytester)
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines_random(
        ["*write @pytest.mark.moldau(settings={...})", "*did you mean num.partitions?"]
    )


def test_the_marker_is_declared(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.moldau(settings={...}): broker configs*"])


def test_workers_have_their_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from confluent_kafka import Producer

        @pytest.mark.parametrize("number", range(8))
        def test_produce(moldau, moldau_session, number):
            for broker in (moldau, moldau_session):
                topic = broker.topic()
                producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
                producer.produce(topic, b"v")
                assert producer.flush(30) == 0
            moldau.restart()
            assert topic in moldau_session.topics()
        """
    )
    pytester.runpytest_subprocess(*ARGUMENTS, "-n", "2").assert_outcomes(passed=8)


def test_who_does_not_use_it_does_not_import_it() -> None:
    code = "import sys, moldau.testing.plugin; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    for name in ("asyncio", "uvloop", "moldau.runtime", "moldau.broker", "moldau.testing.broker"):
        assert f"'{name}'" not in done.stdout


def test_a_pipeline_without_spark_is_one_line(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("import sys; sys.modules['pyspark'] = None")
    pytester.makepyfile("def test_app(pipeline): pass")
    result = pytester.runpytest_subprocess(*ARGUMENTS)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*: pip install 'moldau?spark?'"])
    result.stdout.no_fnmatch_line("*Traceback*")
